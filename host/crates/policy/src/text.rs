//! Cuts texts from a guest or a compiler to a bound.

/// The text, or its first `bytes_max` bytes, cut between characters, with an ellipsis.
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
    fn cuts_between_characters() {
        assert_eq!(bounded("grün", 5), "grün");
        assert_eq!(bounded("grün", 3), "gr…");
    }
}
