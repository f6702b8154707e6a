#pragma once

namespace gallop::parallel {

/// LibTorch asks for the name of the host at the other end of each connection of a store, to log
/// it. A name server that drops one of many queries delays the connection by five seconds, and one
/// that is out of reach by more. Programs that call this, at any time, give LibTorch the numeric
/// address instead (by a getnameinfo() of their own, which is the system's for all other callers).
void use_numeric_host_names();

}  // namespace gallop::parallel
