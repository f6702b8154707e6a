// A study's processes for tests/chaos/tune.py, each of which may be killed at any moment:
//
//   tune_program create WHERE TRIALS HEARTBEAT_SECONDS
//   tune_program coordinate FILE         leads a study in SQLite until its input is closed
//   tune_program work WHERE NAME MILLISECONDS LOG
//                                        runs trials of this mean duration; appends those whose
//                                        result was accepted to LOG
//   tune_program summary WHERE           one line of JSON
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/tune/optimize.h"
#include "gallop/tune/remote/coordinator.h"
#include "gallop/tune/remote/remote_study_client.h"
#include "gallop/tune/storage/sqlite.h"
#include "gallop/tune/store.h"
#include "gallop/tune/tuner.h"

namespace {

using namespace gallop::tune;

constexpr const char* kName = "chaos";
constexpr int kReports = 3;

void create(const std::string& where, int64_t trials, double heartbeat_seconds) {
  open_store(where)->create({.name = kName,
                             .space = Space({{"x", Interval{}}, {"y", Interval{}}}, {}),
                             .objectives = {{"loss", false}},
                             .sampler = R"({"name": "random"})",
                             .trials = trials,
                             .attempts = 1'000'000,
                             .heartbeat_seconds = heartbeat_seconds});
}

gallop::fs::path address_file(const std::string& where) {
  return file_beside(where, kName, "address");
}

bool is_input_closed() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char letter;
  return poll(&input, 1, 0) == 1 && read(STDIN_FILENO, &letter, 1) == 0;
}

/// Until its input is closed, as a worker may start when the study is done already.
void coordinate(const std::string& where) {
  Tuner tuner(open_store(where)->open(kName));
  Coordinator coordinator(tuner, {.address_file = address_file(where)});
  while (!is_input_closed()) coordinator.serve(100);
}

/// Says which trials counted.
class Recording final : public StudyClient {
 public:
  Recording(std::unique_ptr<StudyClient> client, const char* log)
      : client_(std::move(client)), log_(std::fopen(log, "a")) {}
  ~Recording() override { std::fclose(log_); }

  const StudySettings& settings() const override { return client_->settings(); }
  Assignment ask(const std::string& worker) override { return client_->ask(worker); }
  void set_run_folder(const Trial& trial, const std::string& folder) override {
    client_->set_run_folder(trial, folder);
  }
  void share(const Trial& trial, int64_t other, int64_t steps) override {
    client_->share(trial, other, steps);
  }
  Verdict report(const Trial& trial, int64_t step, double value) override {
    return client_->report(trial, step, value);
  }
  Verdict heartbeat(const Trial& trial) override { return client_->heartbeat(trial); }
  bool tell(const Trial& trial, const Outcome& outcome) override {
    const bool counts = client_->tell(trial, outcome);
    if (counts) {
      fmt::print(log_, "{} {}\n", trial.number, trial.attempt);
      std::fflush(log_);
    }
    return counts;
  }
  void release(const Trial& trial) override { client_->release(trial); }
  void control(const Control& control) override { client_->control(control); }

 private:
  std::unique_ptr<StudyClient> client_;
  std::FILE* log_;
};

std::unique_ptr<StudyClient> make_client(const std::string& where) {
  if (where.starts_with("postgresql://")) {
    return std::make_unique<Tuner>(open_store(where)->open(kName));
  }
  return std::make_unique<RemoteStudyClient>([=] { return read_address(address_file(where)); });
}

void work(const std::string& where, const std::string& name, double milliseconds, const char* log) {
  Recording client(make_client(where), log);
  optimize(
      client,
      [&](Evaluation& evaluation) {
        // Between half and one and a half times the mean.
        const double pause = milliseconds * (0.5 + evaluation.number("x")) / kReports;
        for (int64_t step = 1; step <= kReports; ++step) {
          std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pause));
          if (!evaluation.report(step, 1.0 / static_cast<double>(step))) break;
        }
        return std::vector<double>{evaluation.number("y")};
      },
      name);
}

void summarize(const std::string& where) {
  const Study study = open_store(where)->read(kName);
  int64_t right = 0, vanished = 0;
  for (const Trial& trial : study.trials()) {
    right +=
        trial.losses == std::vector<double>{trial.point[1]} && trial.reports.size() == kReports;
    vanished += trial.vanished;
  }
  const std::set<int64_t> once(study.finished().begin(), study.finished().end());
  fmt::print("{}\n", nlohmann::ordered_json{{"wanted", study.wanted_trials()},
                                            {"trials", study.trials().size()},
                                            {"complete", study.count(TrialState::kComplete)},
                                            {"ends", study.finished().size()},
                                            {"ended", once.size()},
                                            {"right", right},
                                            {"vanished", vanished}}
                         .dump());
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "create" && words.size() == 4) {
    create(words[1], std::stoll(words[2]), std::stod(words[3]));
  } else if (command == "coordinate" && words.size() == 2) {
    coordinate(words[1]);
  } else if (command == "work" && words.size() == 5) {
    work(words[1], words[2], std::stod(words[3]), words[4].c_str());
  } else if (command == "summary" && words.size() == 2) {
    summarize(words[1]);
  } else {
    fmt::print(stderr, "see the beginning of tests/chaos/tune_program.cpp\n");
    return static_cast<int>(gallop::ExitCode::kUsage);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
