//! A part of a page that a program writes anew, between two lines that stay.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

/// Before what is written.
pub const BEGIN: &str = "<!-- bench:begin -->";
/// After it.
pub const END: &str = "<!-- bench:end -->";

/// Puts `body` between the marks of the file at `path`, in one rename.
///
/// # Errors
/// When it cannot be read or written, or has not each mark once, in order.
pub fn rewrite(path: &Path, body: &str) -> Result<()> {
    let shown = || path.display().to_string();
    let page = fs::read_to_string(path).with_context(shown)?;
    let staged = path.with_extension("new");
    fs::write(&staged, replaced(&page, body).with_context(shown)?).with_context(shown)?;
    fs::rename(&staged, path).with_context(shown)
}

fn replaced(page: &str, body: &str) -> Result<String> {
    let (head, rest) = page.split_once(BEGIN).with_context(|| format!("no {BEGIN}"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("no {END} after {BEGIN}"))?;
    ensure!(!tail.contains(BEGIN) && !tail.contains(END), "{BEGIN} and {END} are there more than once");
    Ok(format!("{head}{BEGIN}\n{}\n{END}{tail}", body.trim_end()))
}

/// Rows of cells under a head, each column as wide as its widest cell.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|cell| cell.chars().count())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let rule: String = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect();
    let body = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    line(&mut head.iter().copied()) + &format!("|{rule}\n") + &body.collect::<String>()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let page = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let once = replaced(&page, "new\n").unwrap();
        assert_eq!(once, format!("head\n{BEGIN}\nnew\n{END}\ntail\n"));
        assert_eq!(replaced(&once, "new").unwrap(), once);
    }

    #[test]
    fn a_page_without_its_marks_is_left_alone() {
        for page in ["", BEGIN, END, &format!("{END}{BEGIN}"), &format!("{BEGIN}{END}{BEGIN}{END}")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("page.md");
            fs::write(&path, page).unwrap();
            assert!(rewrite(&path, "new").is_err(), "{page}");
            assert_eq!(fs::read_to_string(&path).unwrap(), page);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a call".to_owned(), "1 µs".to_owned()], vec!["x".to_owned(), "10 µs".to_owned()]];
        assert_eq!(
            table(&["", "Node"], &rows),
            "|        | Node  |\n|--------|-------|\n| a call | 1 µs  |\n| x      | 10 µs |\n"
        );
    }
}
