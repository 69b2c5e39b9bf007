//! Fields of a structure as entries of a dictionary, under their own names.

/// Set these fields of a structure in a dictionary.
macro_rules! set_fields {
    ($dict:expr, $of:expr, $($field:ident),+ $(,)?) => {
        $($dict.set_item(stringify!($field), &$of.$field)?;)+
    };
}

pub(super) use set_fields;
