#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gallop/base/error.h"
#include "gallop/tune/broker.h"
#include "gallop/tune/remote/address.h"
#include "gallop/tune/remote/line_socket.h"
#include "gallop/tune/remote/message.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// How long a call waits for a coordinator, and for its answer.
struct Patience {
  double seconds = 300;
  std::function<bool()> goes_on{};  ///< Where it says no meanwhile, 2 s are left.
};

/// Nobody leads the study, or nobody that answers, for as long as there was patience.
class NobodyLeads : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The broker of a worker whose study another process leads. A call waits for a coordinator that
/// has ended until another one leads the study. Throws NobodyLeads where none does for that long,
/// UsageError where it refuses this worker.
class RemoteBroker final : public Broker {
 public:
  /// `find` says where the coordinator is; it is asked anew for each connection.
  explicit RemoteBroker(std::function<RemoteAddress()> find, Patience patience = {});

  const StudySettings& settings() const override { return *settings_; }
  Assignment ask(const std::string& worker) override;
  void place(const Trial& trial, const std::string& folder) override;
  void share(const Trial& trial, int64_t other, int64_t steps) override;
  Verdict report(const Trial& trial, int64_t step, double value) override;
  Verdict beat(const Trial& trial) override;
  bool tell(const Trial& trial, const Outcome& outcome) override;
  void give_back(const Trial& trial) override;
  void steer(const Steer& steer) override;
  /// All that is known of the study.
  Study study();

 private:
  template <typename Wanted>
  Wanted call(const Request& request);
  void connect();
  Answer exchange(const Request& request);
  bool is_over();

  std::function<RemoteAddress()> find_;
  Patience patience_;
  double until_ = 0;   // The call under way gives up.
  std::string place_;  // Where it was looked for last.
  std::optional<LineSocket> socket_;
  std::optional<StudySettings> settings_;
};

}  // namespace gallop::tune
