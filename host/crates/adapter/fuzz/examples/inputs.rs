//! Writes the first inputs of both targets: each recorded message of Node's adapter as it was on the wire, and written
//! for both media, so that both targets begin with every type.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use socketioxide_redis_streams::wire::{Limits, Message};
use socketioxide_redis_streams_fuzz::{Entry, Medium, Payload};

/// A date without binary, which no recording has: it is base64 here and text when it is written.
/// The data is `{requestId: "1", packet: new Date(0)}`.
const DATE: [(&str, &str); 4] =
    [("uid", "1"), ("nsp", "/"), ("type", "12"), ("data", "gqlyZXF1ZXN0SWShMaZwYWNrZXTW/wAAAAA=")];

fn main() -> Result<(), Box<dyn Error>> {
    let recorded = in_crate("../tests/corpus");
    for path in files(&recorded.join("stream"))? {
        let json: Json = serde_json::from_slice(&fs::read(&path)?)?;
        let field = |name| (name, json[name].as_str().unwrap_or_default());
        let entry = Entry::from(["uid", "nsp", "type", "data"].map(field));
        write("stream_entry", &path, &entry.to_input())?;
        write_both(&path, &entry.decode(&Limits::default())?)?;
    }
    for path in files(&recorded.join("pubsub"))? {
        let payload = Payload(fs::read(&path)?);
        write("pubsub_message", &path, &payload.0)?;
        write_both(&path, &payload.decode(&Limits::default())?)?;
    }
    let (path, date) = (Path::new("date"), Entry::from(DATE));
    write("stream_entry", path, &date.to_input())?;
    write_both(path, &date.decode(&Limits::default())?)
}

fn write_both(path: &Path, message: &Message) -> Result<(), Box<dyn Error>> {
    let path = path.with_extension("written");
    write("stream_entry", &path, &Entry::encode(message, &Limits::default())?.to_input())?;
    write("pubsub_message", &path, &Payload::encode(message, &Limits::default())?.0)
}

fn write(target: &str, path: &Path, input: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = in_crate("corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(path.file_name().ok_or("no file")?), input)?)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    Ok(fs::read_dir(folder)?.map(|file| file.map(|file| file.path())).collect::<Result<_, _>>()?)
}

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
