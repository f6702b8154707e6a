#pragma once

namespace gallop::parallel {

/// LibTorch looks up the host name of the peer of each connection to a store, to log it. A DNS
/// server that drops one of many queries delays the connection by five seconds, and an unreachable
/// one by more. A program that calls this anywhere interposes getnameinfo(), which then returns the
/// numeric address to LibTorch, and the system's answer to all other callers. Has no effect in a
/// library that was opened by dlopen().
void use_numeric_host_names();

}  // namespace gallop::parallel
