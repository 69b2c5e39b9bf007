//! Tests of the wire stage: crafted packets whose meaning follows from the bytes, and properties of any bytes.

mod agreement;
mod build;
mod corpus;
mod encapsulations;
mod fragments;
mod ip;
mod tcp;
