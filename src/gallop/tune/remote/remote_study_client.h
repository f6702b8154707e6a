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

/// The client of a study that another process leads. If the coordinator ends, a call waits until
/// another one leads the study. Throws StudyUnreachable when the patience is exhausted, UsageError
/// if the coordinator rejects this worker.
class RemoteStudyClient final : public StudyClient {
 public:
  /// `find` returns the coordinator's address; it is called for each connection.
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
  /// The study with its complete history.
  Study study();

 private:
  template <typename Wanted>
  Wanted call(const Request& request);
  void connect();
  Answer exchange(const Request& request);

  std::function<RemoteAddress()> find_;
  Patience patience_;
  Wait wait_;          // For the current call.
  std::string place_;  // The last address tried.
  std::optional<LineSocket> socket_;
  std::optional<StudySettings> settings_;
};

}  // namespace gallop::tune
