from tcpwin.limits.evidence.hosts import growth as growth
