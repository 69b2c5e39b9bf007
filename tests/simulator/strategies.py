"""Runs for property tests: Hypothesis draws settings and simplifies those of a failing run."""

from __future__ import annotations

from hypothesis import strategies as st
from simulator.draw import draw
from simulator.run import simulate

runs = st.builds(
    lambda random, sack, timestamps, wrap: simulate(draw(random, sack=sack, timestamps=timestamps, wrap=wrap)),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
