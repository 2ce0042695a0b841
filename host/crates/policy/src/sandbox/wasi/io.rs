//! Implements wasi:io without waiting: output is captured, input is at its end, and everything is always ready.

use crate::sandbox::bindings::wasi::io::{error, poll, streams};
use crate::sandbox::{Sandbox, Stream};
use streams::{InputStream, OutputStream, StreamError};
use wasmtime::Result;
use wasmtime::component::Resource;

pub(super) const STDOUT: u32 = 1;
pub(super) const STDERR: u32 = 2;

/// What `check-write` permits at once; more is captured by the next write.
const WRITE_BYTES: u64 = 4096;

impl Sandbox {
    fn capture(&mut self, stream: &Resource<OutputStream>, bytes: &[u8]) -> Result<(), StreamError> {
        let stream = if stream.rep() == STDERR { Stream::Stderr } else { Stream::Stdout };
        self.output.write(stream, bytes);
        Ok(())
    }

    /// A pollable that is ready, as everything is.
    pub(super) fn ready(&mut self) -> Result<Resource<poll::Pollable>> {
        self.open_handle()?;
        Ok(Resource::new_own(0))
    }
}

impl streams::Host for Sandbox {}

impl streams::HostOutputStream for Sandbox {
    fn check_write(&mut self, _: Resource<OutputStream>) -> Result<Result<u64, StreamError>> {
        Ok(Ok(WRITE_BYTES))
    }

    fn write(&mut self, stream: Resource<OutputStream>, bytes: Vec<u8>) -> Result<Result<(), StreamError>> {
        Ok(self.capture(&stream, &bytes))
    }

    fn blocking_write_and_flush(
        &mut self,
        stream: Resource<OutputStream>,
        bytes: Vec<u8>,
    ) -> Result<Result<(), StreamError>> {
        Ok(self.capture(&stream, &bytes))
    }

    fn flush(&mut self, _: Resource<OutputStream>) -> Result<Result<(), StreamError>> {
        Ok(Ok(()))
    }

    fn blocking_flush(&mut self, _: Resource<OutputStream>) -> Result<Result<(), StreamError>> {
        Ok(Ok(()))
    }

    fn subscribe(&mut self, _: Resource<OutputStream>) -> Result<Resource<poll::Pollable>> {
        self.ready()
    }

    /// Zeroes are useless in a log, so they are only counted.
    fn write_zeroes(&mut self, _: Resource<OutputStream>, len: u64) -> Result<Result<(), StreamError>> {
        self.output.drop_bytes(len);
        Ok(Ok(()))
    }

    fn blocking_write_zeroes_and_flush(
        &mut self,
        _: Resource<OutputStream>,
        len: u64,
    ) -> Result<Result<(), StreamError>> {
        self.output.drop_bytes(len);
        Ok(Ok(()))
    }

    fn splice(
        &mut self,
        _: Resource<OutputStream>,
        _: Resource<InputStream>,
        _: u64,
    ) -> Result<Result<u64, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_splice(
        &mut self,
        _: Resource<OutputStream>,
        _: Resource<InputStream>,
        _: u64,
    ) -> Result<Result<u64, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn drop(&mut self, _: Resource<OutputStream>) -> Result<()> {
        self.close_handle();
        Ok(())
    }
}

impl streams::HostInputStream for Sandbox {
    fn read(&mut self, _: Resource<InputStream>, _: u64) -> Result<Result<Vec<u8>, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_read(&mut self, _: Resource<InputStream>, _: u64) -> Result<Result<Vec<u8>, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn skip(&mut self, _: Resource<InputStream>, _: u64) -> Result<Result<u64, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_skip(&mut self, _: Resource<InputStream>, _: u64) -> Result<Result<u64, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn subscribe(&mut self, _: Resource<InputStream>) -> Result<Resource<poll::Pollable>> {
        self.ready()
    }

    fn drop(&mut self, _: Resource<InputStream>) -> Result<()> {
        self.close_handle();
        Ok(())
    }
}

impl poll::Host for Sandbox {
    fn poll(&mut self, pollables: Vec<Resource<poll::Pollable>>) -> Result<Vec<u32>> {
        if pollables.is_empty() {
            // The interface requires a trap, because it would wait for ever.
            return Err(wasmtime::Error::msg("poll of an empty list"));
        }
        Ok((0..).take(pollables.len()).collect())
    }
}

impl poll::HostPollable for Sandbox {
    fn ready(&mut self, _: Resource<poll::Pollable>) -> Result<bool> {
        Ok(true)
    }

    fn block(&mut self, _: Resource<poll::Pollable>) -> Result<()> {
        Ok(())
    }

    fn drop(&mut self, _: Resource<poll::Pollable>) -> Result<()> {
        self.close_handle();
        Ok(())
    }
}

impl error::Host for Sandbox {}

/// No stream returns an error of this kind, but the interface must exist.
impl error::HostError for Sandbox {
    fn to_debug_string(&mut self, _: Resource<error::Error>) -> Result<String> {
        Ok("closed".into())
    }

    fn drop(&mut self, _: Resource<error::Error>) -> Result<()> {
        self.close_handle();
        Ok(())
    }
}
