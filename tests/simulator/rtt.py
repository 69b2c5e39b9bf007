"""Linux's RTT estimator: tcp_rtt_estimator and tcp_set_rto of net/ipv4/tcp_input.c, in microseconds."""

from __future__ import annotations

RTO_MIN_US = 200_000
RTO_MAX_US = 120_000_000
RTO_INITIAL_US = 1_000_000
# Linux's value if the handshake gave no sample because the SYN was retransmitted (TCP_TIMEOUT_FALLBACK).
RTO_FALLBACK_US = 3_000_000
# The minimum of RACK's and TLP's timers (TCP_TIMEOUT_MIN).
TIMEOUT_MIN_US = 2_000


class RoundTrip:
    """SRTT is stored eightfold, the deviation fourfold, as in the kernel."""

    def __init__(self) -> None:
        self.srtt_8 = 0
        self.mdev_4 = self.mdev_max_4 = self.rttvar_4 = RTO_INITIAL_US
        self.min_us = 0
        self.rto_us = RTO_INITIAL_US
        self._rtt_seq = 0

    @property
    def srtt_us(self) -> int:
        return self.srtt_8 >> 3

    def sample(self, rtt_us: int, snd_una: int, snd_nxt: int) -> None:
        rtt_us = max(rtt_us, 1)
        self.min_us = min(self.min_us, rtt_us) if self.min_us else rtt_us
        if not self.srtt_8:
            self.srtt_8 = rtt_us << 3
            self.mdev_4 = rtt_us << 1
            self.rttvar_4 = self.mdev_max_4 = max(self.mdev_4, RTO_MIN_US)
            self._rtt_seq = snd_nxt
        else:
            error = rtt_us - (self.srtt_8 >> 3)
            self.srtt_8 += error
            if error < 0:
                error = -error - (self.mdev_4 >> 2)
                # A shorter round trip counts for less, so that a falling one does not raise the RTO.
                error = error >> 3 if error > 0 else error
            else:
                error -= self.mdev_4 >> 2
            self.mdev_4 += error
            if self.mdev_4 > self.mdev_max_4:
                self.mdev_max_4 = self.mdev_4
                self.rttvar_4 = max(self.rttvar_4, self.mdev_max_4)
            if snd_una > self._rtt_seq:
                if self.mdev_max_4 < self.rttvar_4:
                    self.rttvar_4 -= (self.rttvar_4 - self.mdev_max_4) >> 2
                self._rtt_seq = snd_nxt
                self.mdev_max_4 = RTO_MIN_US
        self.rto_us = min((self.srtt_8 >> 3) + self.rttvar_4, RTO_MAX_US)

    def fall_back(self) -> None:
        """The SYN was retransmitted, so it is unknown which copy was answered."""
        self.mdev_4 = self.mdev_max_4 = self.rttvar_4 = RTO_FALLBACK_US
        self.rto_us = RTO_FALLBACK_US

    def back_off(self) -> None:
        self.rto_us = min(self.rto_us * 2, RTO_MAX_US)
