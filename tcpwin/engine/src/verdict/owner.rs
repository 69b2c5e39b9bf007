//! Owners: who can lift a limit, and at which end.

/// An end of a connection, by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum End {
    Client,
    Server,
}

impl End {
    pub const ALL: [End; 2] = [End::Client, End::Server];

    pub const fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }

    pub const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    pub const fn application(self) -> Owner {
        match self {
            End::Client => Owner::ClientApplication,
            End::Server => Owner::ServerApplication,
        }
    }

    pub const fn host(self) -> Owner {
        match self {
            End::Client => Owner::ClientHost,
            End::Server => Owner::ServerHost,
        }
    }
}

macro_rules! owners {
    ($($owner:ident $name:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Owner { $($owner),* }

        impl Owner {
            pub const ALL: &'static [Owner] = &[$(Owner::$owner),*];

            pub const fn name(self) -> &'static str {
                match self { $(Owner::$owner => $name),* }
            }
        }
    };
}

owners! {
    ClientApplication "client_application";
    ServerApplication "server_application";
    ClientHost "client_host";
    ServerHost "server_host";
    Application "application";
    Host "host";
    Network "network";
    Nobody "nobody";
}

impl Owner {
    /// Return whether it is an application or host of both ends, or of an unknown end. Only findings have such an owner.
    pub const fn is_of_either_end(self) -> bool {
        matches!(self, Owner::Application | Owner::Host)
    }
}
