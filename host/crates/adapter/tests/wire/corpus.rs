//! Reads the files of the corpus.

use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;
use socketioxide_redis_streams::wire::stream::Entry;
use socketioxide_redis_streams::wire::{DecodeError, Limits, Message, pubsub};

/// One recorded message.
pub(crate) enum Recorded {
    /// The fields of a stream entry, in their order.
    Entry(Vec<(String, String)>),
    /// The payload of a PUB/SUB message.
    Payload(Vec<u8>),
}

impl Recorded {
    pub(crate) fn decode(&self) -> Result<Message, DecodeError> {
        match self {
            Recorded::Entry(fields) => decode_fields(fields),
            Recorded::Payload(payload) => pubsub::decode(payload, &Limits::default()),
        }
    }
}

pub(crate) fn decode_fields(fields: &[(String, String)]) -> Result<Message, DecodeError> {
    let fields = fields.iter().map(|(key, value)| (key, value));
    Entry::from_fields(fields, &Limits::default())?.decode(&Limits::default())
}

/// Every recorded message with the name of its file, sorted.
pub(crate) fn all() -> Vec<(String, Recorded)> {
    let mut files: Vec<PathBuf> = ["stream", "pubsub"]
        .iter()
        .flat_map(|dir| fs::read_dir(dir_of(dir)).unwrap())
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 45, "the corpus is not whole");
    files.into_iter().map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), read(&path))).collect()
}

/// The channel that a PUB/SUB message was recorded on.
pub(crate) fn channel(name: &str) -> String {
    let channels: Json = serde_json::from_slice(&fs::read(dir_of("channels.json")).unwrap()).unwrap();
    channels[name].as_str().unwrap().to_owned()
}

fn read(path: &PathBuf) -> Recorded {
    let bytes = fs::read(path).unwrap();
    if path.extension().unwrap() == "msgpack" {
        return Recorded::Payload(bytes);
    }
    let entry: Json = serde_json::from_slice(&bytes).unwrap();
    let field = |name: &str| (name.to_owned(), entry[name].as_str().unwrap().to_owned());
    Recorded::Entry(["uid", "nsp", "type", "data"].map(field).to_vec())
}

fn dir_of(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus", name].iter().collect()
}
