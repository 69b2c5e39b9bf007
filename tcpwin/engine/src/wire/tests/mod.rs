//! Tests of the wire stage: crafted packets whose meaning follows from the bytes, and properties of any bytes.

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
