//! Builds guests for the tests from component text: a slot's interface around a body in core wasm.

// Each test file uses a part of it, and each sees it as its own private module.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod questions;
pub mod types;

/// A guest that is being built: a slot, and bodies that replace the harmless ones.
#[derive(Clone)]
pub struct Guest {
    slot: &'static str,
    /// Body of the slot's function; leaves the address of its result on the stack. Results are at 256.
    decide: String,
    /// Body of `configure`; its parameters are `$ptr` and `$len`, its result is at 128.
    configure: String,
    name: String,
    /// Further core functions and globals.
    extra: String,
    /// Further imports of the component, and of the core module.
    imports: String,
    core_imports: String,
    core_with: String,
}

impl Guest {
    fn new(slot: &'static str, decide: impl Into<String>) -> Self {
        Self {
            slot,
            decide: decide.into(),
            configure: OK_CONFIGURE.into(),
            name: format!("test-{slot}"),
            extra: String::new(),
            imports: String::new(),
            core_imports: String::new(),
            core_with: String::new(),
        }
    }

    /// `$count` is the number of candidates.
    pub fn target(decide: impl Into<String>) -> Self {
        Self::new("target", decide)
    }

    /// Always picks the same index.
    pub fn picks(index: u32) -> Self {
        Self::target(pick(&format!("i32.const {index}")))
    }

    /// Always answers the same time span.
    pub fn waits(span_ms: u32) -> Self {
        Self::new("grace", format!("i32.const 260 i32.const {span_ms} i32.store i32.const 256"))
    }

    /// Answers the variant case `case` with a span.
    pub fn judges(case: u32, span_ms: u32) -> Self {
        Self::new("presence", variant(case, &format!("i32.const {span_ms}")))
    }

    /// Answers the variant case `case` with a span.
    pub fn settles(case: u32, span_ms: u32) -> Self {
        Self::new("settle", variant(case, &format!("i32.const {span_ms}")))
    }

    pub fn configure(mut self, body: &str) -> Self {
        self.configure = body.into();
        self
    }

    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    pub fn extra(mut self, functions: &str) -> Self {
        self.extra = functions.into();
        self
    }

    /// Gives the body `(call $say)`, which writes `text` to stderr by a blocking write.
    pub fn says(mut self, text: &str) -> Self {
        self.imports = SAY_IMPORTS.into();
        self.core_with = SAY_WITH.into();
        self.core_imports = SAY_CORE_IMPORTS.into();
        self.extra = format!(
            r#"(data (i32.const 4096) "{text}")
            (func $say
              call $get-stderr
              i32.const 4096 i32.const {len} i32.const 512 call $write)"#,
            len = text.len()
        );
        self
    }

    /// Gives the body `(call $random)`, which leaves an i64.
    pub fn with_random(mut self) -> Self {
        self.imports = r#"(import "wasi:random/random@0.2.6" (instance $random
              (export "get-random-u64" (func (result u64)))))
            (core func $random (canon lower (func $random "get-random-u64")))"#
            .into();
        self.core_imports = r#"(import "host" "random" (func $random (result i64)))"#.into();
        self.core_with = r#"(export "random" (func $random))"#.into();
        self
    }

    /// An import that no policy may have.
    pub fn with_sockets(mut self) -> Self {
        self.imports = r#"(import "wasi:sockets/instance-network@0.2.6" (instance (export "x" (func))))"#.into();
        self
    }

    /// The component's bytes.
    pub fn wasm(&self) -> Vec<u8> {
        wat::parse_str(self.text()).unwrap_or_else(|error| panic!("{error}\n{}", self.text()))
    }

    fn text(&self) -> String {
        let Self { slot, decide, configure, name, extra, imports, core_imports, core_with, .. } = self;
        let types::SlotTypes { function, component_types, component_params, core_params } = types::of(slot);
        let name_len = name.len();
        format!(
            r#"(component
  (core module $shared (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 8192))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (if (i32.gt_u (global.get $next) (i32.const 60000)) (then (global.set $next (i32.const 8192))))
      (local.get $at)))
  (core instance $shared (instantiate $shared))
  (alias core export $shared "memory" (core memory $memory))
  (alias core export $shared "realloc" (core func $realloc))
  {imports}
  (core module $guest
    (import "shared" "memory" (memory 1))
    {core_imports}
    (data (i32.const 1024) "{name}")
    (data (i32.const 1152) "0.1.0")
    {extra}
    (func (export "describe") (result i32)
      i32.const 64 i32.const 1024 i32.store
      i32.const 68 i32.const {name_len} i32.store
      i32.const 72 i32.const 1152 i32.store
      i32.const 76 i32.const 5 i32.store
      i32.const 80 i32.const 1152 i32.store
      i32.const 84 i32.const 5 i32.store
      i32.const 64)
    (func (export "configure") (param $ptr i32) (param $len i32) (result i32) {configure})
    (func (export "{function}") {core_params} (result i32) {decide}))
  (core instance $host {core_with})
  (core instance $guest (instantiate $guest
    (with "shared" (instance $shared)) (with "host" (instance $host))))
  (type $info' (record (field "name" string) (field "version" string) (field "summary" string)))
  (export $info "info" (type $info'))
  (func $describe (result $info) (canon lift (core func $guest "describe") (memory $memory) (realloc $realloc)))
  (func $configure (param "json" string) (result (result (error string)))
    (canon lift (core func $guest "configure") (memory $memory) (realloc $realloc)))
  (instance $meta (export "describe" (func $describe)) (export "configure" (func $configure)))
  (export "pointwork:policy/meta@0.1.0" (instance $meta))
  {component_types}
  (func $decide {component_params}
    (canon lift (core func $guest "{function}") (memory $memory) (realloc $realloc)))
  (instance $slot (export "{function}" (func $decide)))
  (export "pointwork:policy/{slot}@0.1.0" (instance $slot)))"#
        )
    }
}

/// Body that answers `pick` of the i32 that `index` leaves.
pub fn pick(index: &str) -> String {
    variant(0, index)
}

/// Body that answers `ok` with the case and the i32 that `payload` leaves.
pub fn variant(case: u32, payload: &str) -> String {
    format!(
        "i32.const 256 i32.const 0 i32.store i32.const 260 i32.const {case} i32.store
         i32.const 264 {payload} i32.store i32.const 256"
    )
}

/// Body that answers `err(internal("0.1.0"))`.
pub const POLICY_ERROR: &str = "i32.const 256 i32.const 1 i32.store i32.const 260 i32.const 1 i32.store
    i32.const 264 i32.const 1152 i32.store i32.const 268 i32.const 5 i32.store i32.const 256";

const OK_CONFIGURE: &str = "i32.const 128 i32.const 0 i32.store i32.const 128";

/// Refuses any configuration longer than `{}` with the text "0.1.0".
pub const REFUSE_LONG: &str = "i32.const 128 (i32.gt_u (local.get $len) (i32.const 2)) i32.store
    i32.const 132 i32.const 1152 i32.store i32.const 136 i32.const 5 i32.store i32.const 128";

const SAY_IMPORTS: &str = r#"
  (import "wasi:io/error@0.2.6" (instance $io-error (export "error" (type (sub resource)))))
  (alias export $io-error "error" (type $error))
  (import "wasi:io/streams@0.2.6" (instance $streams
    (export "output-stream" (type $output-stream (sub resource)))
    (alias outer 1 $error (type $outer-error))
    (export "error" (type $e (eq $outer-error)))
    (type $stream-error' (variant (case "last-operation-failed" (own $e)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]output-stream.blocking-write-and-flush"
      (func (param "self" (borrow $output-stream)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "output-stream" (type $output-stream))
  (import "wasi:cli/stderr@0.2.6" (instance $stderr
    (alias outer 1 $output-stream (type $outer-stream))
    (export "output-stream" (type $s (eq $outer-stream)))
    (export "get-stderr" (func (result (own $s))))))
  (core func $get-stderr (canon lower (func $stderr "get-stderr")))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory $memory) (realloc $realloc)))"#;

const SAY_CORE_IMPORTS: &str = r#"
    (import "host" "get-stderr" (func $get-stderr (result i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))"#;

const SAY_WITH: &str = r#"(export "get-stderr" (func $get-stderr)) (export "write" (func $write))"#;
