//! The names that a block which could not be parsed may bind or change, found in its tokens.
//!
//! The answer may contain too many names, never too few: the evaluation of the module treats none of them as a constant.

use crate::ast::Ident;
use crate::token::{Spanned, Token};
use rtc_source::{FileId, Span};

/// The names that the tokens of a block may bind, or whose values they may change, at the level of the module.
pub(super) fn bound_names(file: FileId, tokens: &[Spanned<'_>]) -> Vec<Ident> {
    let mut found = Vec::new();
    let (mut start, mut depth) = (0, 0usize);
    // The indentation of the function or class whose body the line is in.
    let mut inside: Option<usize> = None;
    for (index, token) in tokens.iter().enumerate() {
        if !matches!(token.token, Token::Indent | Token::Dedent | Token::Newline | Token::Semicolon) {
            continue;
        }
        line(&tokens[start..index], depth, &mut inside, &mut found);
        start = index + 1;
        match token.token {
            Token::Indent => depth += 1,
            Token::Dedent => {
                depth = depth.saturating_sub(1);
                inside = inside.filter(|outer| depth > *outer);
            }
            _ => {}
        }
    }
    line(&tokens[start..], depth, &mut inside, &mut found);
    let ident = |t: &Spanned<'_>| match t.token {
        Token::Name(name) => Some(Ident { span: Span::new(file, t.start as usize, t.end as usize), text: name.into() }),
        _ => None,
    };
    found.into_iter().filter_map(ident).collect()
}

fn line<'t, 's>(tokens: &'t [Spanned<'s>], depth: usize, inside: &mut Option<usize>, found: &mut Vec<&'t Spanned<'s>>) {
    let tokens = match tokens.split_first() {
        Some((first, rest)) if first.token == Token::Async => rest,
        _ => tokens,
    };
    let Some(head) = tokens.first() else { return };
    match &head.token {
        Token::Def | Token::Class => {
            if inside.is_none() {
                found.extend(tokens.get(1));
                *inside = Some(depth);
            }
            return;
        }
        Token::Global => return found.extend(tokens),
        Token::Name("case") if inside.is_none() => found.extend(tokens),
        Token::Name(_) if matches!(tokens.get(1).map(|t| &t.token), Some(Token::Dot | Token::LBracket)) => {
            found.push(head);
        }
        _ => {}
    }
    if inside.is_some() {
        return;
    }
    let is_header = matches!(
        head.token,
        Token::If | Token::Elif | Token::Else | Token::While | Token::For | Token::With | Token::Name("match" | "case")
    );
    let (mut brackets, mut colon, mut assignment) = (0usize, None, None);
    for (index, token) in tokens.iter().enumerate() {
        let previous = index.checked_sub(1).and_then(|i| tokens.get(i)).map(|t| &t.token);
        match &token.token {
            Token::ColonEqual => found.extend(index.checked_sub(1).and_then(|i| tokens.get(i))),
            Token::Name(_) if matches!(previous, Some(Token::As | Token::Import | Token::Del)) => found.push(token),
            opening if opening.opens() => brackets += 1,
            closing if closing.closes() => brackets = brackets.saturating_sub(1),
            Token::Colon if brackets == 0 && is_header => colon = colon.or(Some(index + 1)),
            other if brackets == 0 && assigns(other) => assignment = Some(index),
            _ => {}
        }
    }
    if head.token == Token::For {
        found.extend(tokens.iter().take_while(|t| t.token != Token::In));
    }
    if let Some(end) = assignment {
        found.extend(tokens.get(colon.unwrap_or(0)..end).unwrap_or_default());
    }
    if matches!(head.token, Token::Import | Token::From | Token::Del) {
        found.extend(tokens);
    }
}

fn assigns(token: &Token<'_>) -> bool {
    use Token::*;
    matches!(
        token,
        Equal
            | PlusEqual
            | MinusEqual
            | StarEqual
            | SlashEqual
            | DoubleSlashEqual
            | PercentEqual
            | AtEqual
            | DoubleStarEqual
            | ShiftLeftEqual
            | ShiftRightEqual
            | AmpersandEqual
            | PipeEqual
            | CaretEqual
    )
}
