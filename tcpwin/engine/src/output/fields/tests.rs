use super::*;
use crate::output::field::Kind;
use std::collections::HashSet;

#[test]
fn names_are_unique_and_documented() {
    for names in [
        CONNECTION_FIELDS
            .iter()
            .map(|f| (f.name, f.doc))
            .collect::<Vec<_>>(),
        direction_fields().map(|f| (f.name, f.doc)).collect(),
    ] {
        let unique: HashSet<_> = names.iter().map(|(name, _)| name).collect();
        assert_eq!(unique.len(), names.len());
        assert!(names.iter().all(|(_, doc)| doc.ends_with('.')));
    }
}

#[test]
fn values_are_of_their_kind() {
    let mut connection = Connection::new(&crate::wire::Segment::EMPTY, 0);
    connection.end_ns += 5;
    let fits = |kind: Kind, value: &Value| {
        matches!(
            (kind, value),
            (_, Value::None)
                | (Kind::Bool, Value::Bool(_))
                | (Kind::Int, Value::Int(_))
                | (Kind::Real, Value::Real(_))
                | (Kind::Text, Value::Text(_) | Value::Address(_))
        )
    };
    let view = ConnectionView {
        id: 0,
        connection: &connection,
    };
    for field in CONNECTION_FIELDS {
        assert!(fits(field.kind, &(field.get)(&view)), "{}", field.name);
    }
    let view = DirectionView::new(&connection, true);
    for field in direction_fields() {
        assert!(fits(field.kind, &(field.get)(&view)), "{}", field.name);
    }
    let items = BUDGET_FIELDS.iter().map(|field| (field.get)(&view));
    assert!(items.eq(view.budget().map(int)));
}
