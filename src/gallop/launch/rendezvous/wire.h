#pragma once

#include <optional>
#include <string>

#include "gallop/launch/rendezvous/message.h"

namespace gallop::launch {

/// A connection between two launchers; each end has its own number for it, which is used once.
using Link = int;

/// How launchers reach each other. Candidates are the places of --rdzv, by their number in its
/// list.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Looks the names of the candidates up again. May take seconds.
  virtual void look_up() = 0;
  /// Begins to connect; where that fails the link closes.
  virtual Link connect(int candidate) = 0;
  virtual void send(Link link, const Message& message) = 0;
  /// Closes it once all that was sent has gone; nothing comes from it any more.
  virtual void close(Link link) = 0;
  /// Whether others can connect to this launcher at the candidate from now on: it is an address of
  /// this host, and no process listens there.
  virtual bool listen(int candidate) = 0;
  virtual void stop_listening() = 0;

  /// "10.0.0.1" at the other end of a link, for messages to people.
  virtual std::string address_of(Link link) const = 0;
  /// "host:port" of a candidate, and why it was not reached, where it was not.
  virtual std::string describe(int candidate) const = 0;
};

/// Something that happened on a link.
struct Event {
  Link link = 0;
  bool incoming = false;  ///< The other side has connected.
  /// Nothing where it was closed or has failed; it is gone then.
  std::optional<Message> message;
};

/// What a launcher does on its own host.
class Work {
 public:
  virtual ~Work() = default;
  virtual void start(const Start& start) = 0;
  /// Asks the processes to stop, and kills them after so many seconds; again with fewer: earlier.
  virtual void stop(double grace) = 0;
  /// How the processes ended, once all have; until the next start.
  virtual std::optional<Ended> ended() = 0;
  /// The run that the processes of all hosts train.
  virtual void know_run(const std::string& run) = 0;
  /// The same, where this host is the one to find out; empty where it is not.
  virtual std::string run_folder() = 0;
  /// Why another host's run folder cannot be used here; empty where it can, or may yet.
  virtual std::string trouble_with(const std::string& run) = 0;
  /// Serves the store in which processes meet, from the first call on.
  virtual void serve_store(Start& place) = 0;
  virtual void say(const std::string& line) = 0;
};

/// How a job begins, goes on and gives up. Times are in seconds.
struct JobOptions {
  int min_hosts = 1, max_hosts = 1;
  int candidates = 1;
  double join_seconds = 3;    ///< For more hosts, once there are enough.
  double lost_after = 5;      ///< Without a sign of life.
  double wait_seconds = 600;  ///< For enough hosts, and for one that coordinates.
  double grace = 30;
  int max_restarts = 3;
};

/// "2 hosts" or "2 to 4 hosts".
std::string describe_hosts(const JobOptions& options);

/// What is left of the grace where other hosts are lost: nothing can be saved without them.
constexpr double kGraceAfterLoss = 2;
/// Between signs of life, and between questions.
constexpr double kSignSeconds = 1;
/// For an answer to a question.
constexpr double kAskSeconds = 2;

}  // namespace gallop::launch
