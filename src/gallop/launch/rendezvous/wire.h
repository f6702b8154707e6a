#pragma once

#include <optional>
#include <string>

#include "gallop/launch/rendezvous/message.h"

namespace gallop::launch {

/// A connection between two launchers; each side has its own unique number for it.
using Link = int;

/// The transport between launchers. Candidates are indices in the list of --rdzv.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Resolves the names of the candidates again. May take seconds.
  virtual void look_up() = 0;
  /// Starts to connect; on failure, the link closes.
  virtual Link connect(int candidate) = 0;
  virtual void send(Link link, const Message& message) = 0;
  /// Closes the link once everything was sent; it produces no further events.
  virtual void close(Link link) = 0;
  /// Tries to listen at a candidate. True if that is an address of this host, and no process
  /// listens there.
  virtual bool listen(int candidate) = 0;
  virtual void stop_listening() = 0;

  /// The remote address of a link, such as "10.0.0.1", for messages.
  virtual std::string address_of(Link link) const = 0;
  /// The "host:port" of a candidate, with the error if it could not be reached.
  virtual std::string describe(int candidate) const = 0;
};

/// An event on a link.
struct Event {
  Link link = 0;
  bool incoming = false;  ///< The other side has connected.
  /// Nothing if the link was closed or has failed; it no longer exists then.
  std::optional<Message> message;
};

/// The actions of a launcher on its own host.
class Work {
 public:
  virtual ~Work() = default;
  virtual void start(const Start& start) = 0;
  /// Asks the processes to stop, and kills them after `grace` seconds; repeated calls can shorten
  /// it.
  virtual void stop(double grace) = 0;
  /// The result of the processes, once all have ended; until the next start.
  virtual std::optional<Ended> ended() = 0;
  /// Sets the run that the processes of all hosts train.
  virtual void know_run(const std::string& run) = 0;
  /// The run folder, if this host is the one that knows it; otherwise empty.
  virtual std::string run_folder() = 0;
  /// Why another host's run folder cannot be used here; empty if it can, or may be visible later.
  virtual std::string trouble_with(const std::string& run) = 0;
  /// Serves the store of the process group, from the first call on.
  virtual void serve_store(Start& place) = 0;
  virtual void say(const std::string& line) = 0;
};

/// Rendezvous options of a job. Times are in seconds.
struct JobOptions {
  int min_hosts = 1, max_hosts = 1;
  int candidates = 1;
  double join_seconds = 3;    ///< Wait for further hosts once there are enough.
  double lost_after = 5;      ///< Timeout without a heartbeat.
  double wait_seconds = 600;  ///< Wait for enough hosts, and for a coordinator.
  double grace = 30;
  int max_restarts = 3;
};

/// "2 hosts" or "2 to 4 hosts".
std::string describe_hosts(const JobOptions& options);

/// The grace period if other hosts are lost: without them nothing can be saved.
constexpr double kGraceAfterLoss = 2;
/// Interval of heartbeats and inquiries.
constexpr double kSignSeconds = 1;
/// Timeout of an inquiry.
constexpr double kAskSeconds = 2;

}  // namespace gallop::launch
