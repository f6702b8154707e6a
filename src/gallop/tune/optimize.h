#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/tune/study_client.h"

namespace gallop::tune {

/// A trial as its objective sees it.
class Evaluation {
 public:
  Evaluation(StudyClient& client, const Assignment& assignment)
      : client_(client), trial_(assignment.trial), parent_folder_(assignment.parent_folder) {}

  const Trial& trial() const { return trial_; }
  /// The run of the trial from which this one begins; empty for none.
  const std::string& parent_folder() const { return parent_folder_; }

  /// The value of a numeric parameter, or of a choice that is a number. Throws UsageError where
  /// there is no such parameter, or its value is no number; kInactive where its condition does not
  /// hold.
  double number(const std::string& name) const;
  /// The value of a parameter as JSON text, a choice between texts without its quotes. `null` where
  /// its condition does not hold. Throws UsageError where there is no such parameter.
  std::string text(const std::string& name) const;

  /// Tells how far it is, by the first objective's metric. False where the objective is to return;
  /// what it returns is not taken then.
  bool report(int64_t step, double value);
  /// A sign of life for an objective that reports less often than a heartbeat; false as above.
  bool heartbeat();

  /// kGoOn up to the call that returned false.
  Verdict verdict() const { return verdict_; }
  /// Whether one of these calls has thrown, since the study could not be reached.
  bool is_cut_off() const { return is_cut_off_; }

 private:
  size_t index_of(const std::string& name) const;
  bool take(const std::function<Verdict()>& call);

  StudyClient& client_;
  Trial trial_;
  std::string parent_folder_;
  Verdict verdict_ = Verdict::kGoOn;
  bool is_cut_off_ = false;
};

/// The metrics of a trial, one for each objective. What is thrown is kept as the message of a
/// failed trial.
using ObjectiveFunction = std::function<std::vector<double>(Evaluation&)>;

/// Runs trials in this thread until the study needs no more. `worker` is a name that no other has.
/// Throws what the broker throws.
void optimize(StudyClient& client, const ObjectiveFunction& objective,
              const std::string& worker = "optimize");

}  // namespace gallop::tune
