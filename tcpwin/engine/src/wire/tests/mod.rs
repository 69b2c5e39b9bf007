//! Tests of the wire stage: crafted packets with known results, and properties of arbitrary bytes.

mod agreement;
mod build;
mod cases;
mod corpus;
mod encapsulations;
mod fragments;
mod ip;
mod link_cases;
mod tcp;
mod tunnel_cases;
