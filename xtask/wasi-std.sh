#!/usr/bin/env bash
# Puts the standard library for wasm32-wasip2 into a Rust toolchain where rustup cannot fetch it: builds it from Debian's
# `rust-src` of the very same version, with the C parts of Debian's `wasi-libc`. Takes about a minute.
#   wasi-std.sh SYSROOT        (SYSROOT: what `rustc --print sysroot` says)
# Nothing is installed on the system: the packages are unpacked into a temporary folder that is removed at the end, and
# the toolchain is touched once, by a rename, when all is built.
set -euo pipefail

target=wasm32-wasip2
fail() {
  echo "wasi-std: $1" >&2
  echo "wasi-std: do this instead: $2" >&2
  exit 1
}
elsewhere="run \`rustup target add $target\` where rustup reaches its server, then copy lib/rustlib/$target of that toolchain to this one"

[ $# -eq 1 ] || { echo "usage: wasi-std.sh SYSROOT" >&2; exit 2; }
# A linked toolchain is followed to the real one, so that the rename below stays on one file system.
sysroot=$(readlink -f "$1") || fail "there is no folder $1" "give what \`rustc --print sysroot\` prints"
rustc=$sysroot/bin/rustc
cargo=$sysroot/bin/cargo
[ -x "$rustc" ] && [ -x "$cargo" ] || fail "$sysroot holds no rustc and cargo" "give what \`rustc --print sysroot\` prints"
rustlib=$sysroot/lib/rustlib
[ -w "$rustlib" ] || fail "$rustlib cannot be written by $(id -un)" "run it as root, or as the toolchain's owner"
[ ! -e "$rustlib/$target/lib/self-contained" ] || [ -z "$(find "$rustlib/$target/lib" -name 'libstd-*.rlib' -print -quit)" ] || exit 0
# apt drops to another user for its downloads and locks its folders unless it runs as root.
[ "$(id -u)" -eq 0 ] || fail "the fallback uses apt-get and needs root" "run it again as root, or $elsewhere"
for tool in apt-get apt-cache dpkg-deb; do
  command -v "$tool" >/dev/null || fail "$tool is missing: this way needs Debian's package tools" "$elsewhere"
done
version=$("$rustc" --version | awk '{print $2}')

work=$(mktemp -d)
staged=$rustlib/.$target.$$
trap 'rm -rf "$work" "$staged"' EXIT
trap 'exit 130' INT TERM

# The mirror is the machine's own: the first one that apt is set up with, in either of apt's two formats.
mirror=$( { grep -hs '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}'
            grep -hs '^deb ' /etc/apt/sources.list /etc/apt/sources.list.d/*.list | sed 's/\[[^]]*\]//' | awk '{print $2}'
          } | grep -v security | grep '/debian/*$' | head -n 1 || true)
[ -n "$mirror" ] || fail "apt is set up with no Debian mirror" "$elsewhere"

mkdir -p "$work"/apt/{lists/partial,cache/archives/partial} "$work"/{debs,root}
# A private list and cache: the machine's own package lists stay as they are.
options=(-qq -o "Dir::Etc::SourceList=$work/apt/sources.list" -o Dir::Etc::SourceParts=-
         -o "Dir::State::Lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache" -o APT::Sandbox::User=root)

# The source must match the compiler to the patch level; which suite carries it changes with time.
found=
for suite in trixie-backports forky trixie sid; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/apt/sources.list"
  apt-get "${options[@]}" update >"$work/update.log" 2>&1 || { cat "$work/update.log" >&2; continue; }
  found=$(apt-cache "${options[@]}" madison rust-src | awk -v v="$version" '{ split($3, a, /[+-]/); if (a[1] == v) { print $3; exit } }')
  [ -z "$found" ] || break
done
[ -n "$found" ] || fail "no suite of $mirror carries rust-src $version" "$elsewhere"
echo "wasi-std: building the standard library for $target from rust-src $found ($suite)" >&2

(cd "$work/debs" && apt-get "${options[@]}" download "rust-src=$found" wasi-libc) ||
  fail "the packages rust-src and wasi-libc could not be downloaded" "look at apt's message above, or $elsewhere"
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/root"; done
library=$work/root/usr/src/rustc-$version/library
[ -d "$library" ] || fail "rust-src $found has no library folder for $version" "$elsewhere"

# The flags are those with which the compiler's own build makes a distributed standard library: without
# -Zforce-unstable-if-unmarked its crates would be offered to stable code, and without the metadata seed
# they could clash with crates of the same name in a user's build.
(cd "$library" && env -u RUSTUP_TOOLCHAIN -u CARGO_BUILD_TARGET -u CARGO_ENCODED_RUSTFLAGS RUSTC="$rustc" RUSTC_BOOTSTRAP=1 \
  RUSTFLAGS="-Zforce-unstable-if-unmarked -Cembed-bitcode=yes -Cpanic=abort" \
  CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=3 __CARGO_DEFAULT_LIB_METADATA=$target CARGO_TARGET_DIR="$work/out" \
  "$cargo" -Zavoid-dev-deps build --quiet --release --locked --target "$target" \
  -p sysroot --features "backtrace panic-unwind compiler-builtins-mem") ||
  fail "the standard library did not build" "look at the compiler's message above, or $elsewhere"

mkdir -p "$staged/lib/self-contained"
cp "$work"/root/usr/lib/$target/{crt1*.o,lib*.a} "$staged/lib/self-contained/"
cp "$work"/out/$target/release/deps/*.rlib "$staged/lib/"
rm -rf "${rustlib:?}/$target"
mv "$staged" "$rustlib/$target"
echo "wasi-std: $target is in $sysroot" >&2
