//! Implements wasi:cli: no environment, no arguments, no terminal; exit is a trap.

use super::io::{STDERR, STDOUT};
use crate::sandbox::Sandbox;
use crate::sandbox::bindings::wasi::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr, terminal_stdin,
    terminal_stdout,
};
use crate::sandbox::bindings::wasi::io::streams::{InputStream, OutputStream};
use terminal_input::TerminalInput;
use terminal_output::TerminalOutput;
use wasmtime::Result;
use wasmtime::component::Resource;

impl environment::Host for Sandbox {
    fn get_environment(&mut self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn get_arguments(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for Sandbox {
    fn exit(&mut self, _: Result<(), ()>) -> Result<()> {
        Err(wasmtime::Error::msg("the policy called exit"))
    }

    fn exit_with_code(&mut self, code: u8) -> Result<()> {
        Err(wasmtime::Error::msg(format!("the policy called exit with {code}")))
    }
}

impl stdin::Host for Sandbox {
    fn get_stdin(&mut self) -> Result<Resource<InputStream>> {
        self.open_handle()?;
        Ok(Resource::new_own(0))
    }
}

impl stdout::Host for Sandbox {
    fn get_stdout(&mut self) -> Result<Resource<OutputStream>> {
        self.open_handle()?;
        Ok(Resource::new_own(STDOUT))
    }
}

impl stderr::Host for Sandbox {
    fn get_stderr(&mut self) -> Result<Resource<OutputStream>> {
        self.open_handle()?;
        Ok(Resource::new_own(STDERR))
    }
}

impl terminal_input::Host for Sandbox {}

impl terminal_input::HostTerminalInput for Sandbox {
    fn drop(&mut self, _: Resource<TerminalInput>) -> Result<()> {
        Ok(())
    }
}

impl terminal_output::Host for Sandbox {}

impl terminal_output::HostTerminalOutput for Sandbox {
    fn drop(&mut self, _: Resource<TerminalOutput>) -> Result<()> {
        Ok(())
    }
}

impl terminal_stdin::Host for Sandbox {
    fn get_terminal_stdin(&mut self) -> Result<Option<Resource<TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for Sandbox {
    fn get_terminal_stdout(&mut self) -> Result<Option<Resource<TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for Sandbox {
    fn get_terminal_stderr(&mut self) -> Result<Option<Resource<TerminalOutput>>> {
        Ok(None)
    }
}
