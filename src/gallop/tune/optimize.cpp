#include "gallop/tune/optimize.h"

#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

constexpr std::chrono::milliseconds kAskAgain{20};

Outcome outcome_of(Evaluation& evaluation, const ObjectiveFunction& objective) {
  try {
    std::vector<double> values = objective(evaluation);
    if (evaluation.verdict() == Verdict::kPrune) return {.state = TrialState::kPruned};
    return {.state = TrialState::kComplete, .values = std::move(values)};
  } catch (const std::exception& error) {
    if (evaluation.is_cut_off()) throw;
    return {.state = TrialState::kFailed, .message = error.what()};
  }
}

}  // namespace

size_t Evaluation::index_of(const std::string& name) const {
  const auto index = client_.settings().space.find(name);
  if (!index) throw UsageError(fmt::format("the space has no parameter '{}'", printable(name)));
  return *index;
}

double Evaluation::number(const std::string& name) const {
  const size_t index = index_of(name);
  const Parameter& parameter = client_.settings().space[index];
  const double value = trial_.point[index];
  if (parameter.interval() != nullptr || value != value) return value;
  const auto number = parse_number<double>(text(name));
  if (!number) {
    throw UsageError(fmt::format("'{}' is not a number: {}", printable(name), text(name)));
  }
  return *number;
}

std::string Evaluation::text(const std::string& name) const {
  const size_t index = index_of(name);
  const std::string json = client_.settings().space.value_text(index, trial_.point[index]);
  return json.starts_with('"') ? nlohmann::json::parse(json).get<std::string>() : json;
}

bool Evaluation::take(const std::function<Verdict()>& call) {
  try {
    const Verdict verdict = call();
    if (verdict != Verdict::kGoOn) verdict_ = verdict;
  } catch (...) {
    is_cut_off_ = true;
    throw;
  }
  return verdict_ == Verdict::kGoOn;
}

bool Evaluation::report(int64_t step, double value) {
  return take([&] { return client_.report(trial_, step, value); });
}

bool Evaluation::heartbeat() {
  return take([&] { return client_.heartbeat(trial_); });
}

void optimize(StudyClient& client, const ObjectiveFunction& objective, const std::string& worker) {
  while (true) {
    const Assignment assignment = client.ask(worker);
    if (assignment.kind == Assignment::Kind::kDone) return;
    if (assignment.kind == Assignment::Kind::kWait) {
      std::this_thread::sleep_for(kAskAgain);
      continue;
    }
    Evaluation evaluation(client, assignment);
    const Outcome outcome = outcome_of(evaluation, objective);
    if (evaluation.verdict() != Verdict::kAbandon) client.tell(assignment.trial, outcome);
  }
}

}  // namespace gallop::tune
