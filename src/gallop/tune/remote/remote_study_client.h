#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gallop/tune/patience.h"
#include "gallop/tune/remote/address.h"
#include "gallop/tune/remote/line_socket.h"
#include "gallop/tune/remote/message.h"
#include "gallop/tune/study.h"
#include "gallop/tune/study_client.h"

namespace gallop::tune {

/// The broker of a worker whose study another process leads. A call waits for a coordinator that
/// has ended until another one leads the study. Throws StudyUnreachable where none does for that
/// long, UsageError where it refuses this worker.
class RemoteStudyClient final : public StudyClient {
 public:
  /// `find` says where the coordinator is; it is asked again for each connection.
  explicit RemoteStudyClient(std::function<RemoteAddress()> find, Patience patience = {});

  const StudySettings& settings() const override { return *settings_; }
  Assignment ask(const std::string& worker) override;
  void set_run_folder(const Trial& trial, const std::string& folder) override;
  void share(const Trial& trial, int64_t other, int64_t steps) override;
  Verdict report(const Trial& trial, int64_t step, double value) override;
  Verdict heartbeat(const Trial& trial) override;
  bool tell(const Trial& trial, const Outcome& outcome) override;
  void release(const Trial& trial) override;
  void control(const Control& control) override;
  /// All that is known of the study.
  Study study();

 private:
  template <typename Wanted>
  Wanted call(const Request& request);
  void connect();
  Answer exchange(const Request& request);

  std::function<RemoteAddress()> find_;
  Patience patience_;
  Wait wait_;          // Of the call under way.
  std::string place_;  // Where it was looked for last.
  std::optional<LineSocket> socket_;
  std::optional<StudySettings> settings_;
};

}  // namespace gallop::tune
