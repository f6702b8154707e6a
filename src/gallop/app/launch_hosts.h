#pragma once

#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/base/stop.h"
#include "gallop/launch/rendezvous/tcp_wire.h"
#include "gallop/launch/rendezvous/wire.h"

namespace gallop::app {

/// Arguments of 'gallop launch' on one of several hosts.
struct HostsLaunch {
  launch::JobOptions job;
  std::vector<launch::Candidate> candidates;  ///< For the coordinator and the store, in order.
  std::string interface;                      ///< Of the network; empty: any.
  int processes = 1;                          ///< On this host.
  std::vector<std::string> command;  ///< "train", another command or a program, with its arguments.
};

/// Trains together with the launchers on other hosts, see launch/rendezvous/launcher.h, and returns
/// how the training ended for all. Throws UsageError if the interface does not exist.
ExitCode launch_on_hosts(const HostsLaunch& launch, const StopRequest& stop);

}  // namespace gallop::app
