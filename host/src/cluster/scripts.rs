//! Runs Lua scripts in Redis and decodes their replies.

use bytes::Bytes;
use socketioxide_redis_streams::transport::{
    TransportError,
    redis::{Redis, ScriptReply},
};

/// A reply of another type than the script gives: another program wrote to the script's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnexpectedReply;

/// Runs a script about `key` and decodes its reply.
pub(crate) async fn run_script<T: FromReply, E: From<TransportError> + From<UnexpectedReply>>(
    redis: &Redis,
    script: &'static str,
    key: String,
    args: Vec<Bytes>,
) -> Result<T, E> {
    Ok(T::from_reply(redis.evaluate(script, vec![key], args).await?)?)
}

/// A text as an argument of a script.
pub(crate) fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A number as an argument of a script.
pub(crate) fn number(number: u64) -> Bytes {
    number.to_string().into()
}

/// What can be decoded from the reply of a script, or from a part of it.
pub(crate) trait FromReply: Sized {
    /// # Errors
    /// When the reply has another type.
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply>;
}

/// A flat list of two values each, such as the fields of a hash.
pub(crate) struct Pairs<A, B>(pub(crate) Vec<(A, B)>);

impl FromReply for ScriptReply {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        Ok(reply)
    }
}

impl FromReply for () {
    fn from_reply(_: ScriptReply) -> Result<Self, UnexpectedReply> {
        Ok(())
    }
}

impl FromReply for Bytes {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        match reply {
            ScriptReply::Text(text) => Ok(text),
            _ => Err(UnexpectedReply),
        }
    }
}

impl FromReply for String {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        Self::from_utf8(Bytes::from_reply(reply)?.into()).map_err(|_| UnexpectedReply)
    }
}

impl FromReply for i64 {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        match reply {
            ScriptReply::Number(number) => Ok(number),
            _ => Err(UnexpectedReply),
        }
    }
}

/// A number, also one that is written as text because Lua would round it.
impl FromReply for u64 {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        match reply {
            ScriptReply::Number(number) => Self::try_from(number).map_err(|_| UnexpectedReply),
            text => String::from_reply(text)?.parse().map_err(|_| UnexpectedReply),
        }
    }
}

impl<T: FromReply> FromReply for Option<T> {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        if reply == ScriptReply::Nothing { Ok(None) } else { T::from_reply(reply).map(Some) }
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        match reply {
            ScriptReply::List(values) => values.into_iter().map(T::from_reply).collect(),
            _ => Err(UnexpectedReply),
        }
    }
}

impl<A: FromReply, B: FromReply> FromReply for (A, B) {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        let [a, b] = Vec::from_reply(reply)?.try_into().map_err(|_| UnexpectedReply)?;
        Ok((A::from_reply(a)?, B::from_reply(b)?))
    }
}

impl<A: FromReply, B: FromReply, C: FromReply> FromReply for (A, B, C) {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        let [a, b, c] = Vec::from_reply(reply)?.try_into().map_err(|_| UnexpectedReply)?;
        Ok((A::from_reply(a)?, B::from_reply(b)?, C::from_reply(c)?))
    }
}

impl<A: FromReply, B: FromReply> FromReply for Pairs<A, B> {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        let mut values = Vec::from_reply(reply)?.into_iter();
        let mut pairs = Vec::with_capacity(values.len() / 2);
        while let (Some(a), Some(b)) = (values.next(), values.next()) {
            pairs.push((A::from_reply(a)?, B::from_reply(b)?));
        }
        Ok(Self(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_reply(text: &str) -> ScriptReply {
        ScriptReply::Text(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn decodes_texts_numbers_and_lists() {
        let list = ScriptReply::List(vec![text_reply("17"), ScriptReply::Nothing, ScriptReply::Number(3)]);
        assert_eq!(FromReply::from_reply(list.clone()), Ok((17_u64, None::<String>, 3_i64)));
        assert_eq!(<(u64, u64)>::from_reply(list.clone()), Err(UnexpectedReply), "another length");
        assert_eq!(Vec::<String>::from_reply(list), Err(UnexpectedReply), "another type");
        assert_eq!(String::from_reply(ScriptReply::Text(b"\xff"[..].into())), Err(UnexpectedReply));
        assert_eq!(u64::from_reply(ScriptReply::Number(-1)), Err(UnexpectedReply));
    }

    #[test]
    fn decodes_a_flat_list_of_pairs() {
        let list = ScriptReply::List(vec![text_reply("a"), text_reply("1"), text_reply("b"), text_reply("2")]);
        let pairs = Pairs::<String, u64>::from_reply(list).map(|pairs| pairs.0);
        assert_eq!(pairs, Ok(vec![("a".to_owned(), 1), ("b".to_owned(), 2)]));
    }
}
