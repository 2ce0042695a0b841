//! Text from a guest or a compiler, cut to a bound.

/// At most `bytes_max` bytes of it and an ellipsis, cut between characters.
pub(crate) fn bounded(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_string();
    }
    let cut = text.floor_char_boundary(bytes_max);
    format!("{}…", &text[..cut])
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    fn cut_between_characters() {
        assert_eq!(bounded("grün", 5), "grün");
        assert_eq!(bounded("grün", 3), "gr…");
    }
}
