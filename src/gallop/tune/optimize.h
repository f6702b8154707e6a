#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/tune/study_client.h"

namespace gallop::tune {

/// A trial as seen by its objective function.
class Evaluation {
 public:
  Evaluation(StudyClient& client, const Assignment& assignment)
      : client_(client), trial_(assignment.trial), parent_folder_(assignment.parent_folder) {}

  const Trial& trial() const { return trial_; }
  /// The run folder of the trial from whose checkpoint this one starts; empty for none.
  const std::string& parent_folder() const { return parent_folder_; }

  /// The value of a numeric parameter, or of a numeric choice; kInactive if its condition does not
  /// hold. Throws UsageError if there is no such parameter, or its value is not a number.
  double number(const std::string& name) const;
  /// The value of a parameter as JSON text, a text choice without its quotes; `null` if its
  /// condition does not hold. Throws UsageError if there is no such parameter.
  std::string text(const std::string& name) const;

  /// Reports an intermediate value of the first objective's metric. False if the objective function
  /// must return; its result is then ignored.
  bool report(int64_t step, double value);
  /// A heartbeat, for objective functions that report less often; false as for report().
  bool heartbeat();

  /// kGoOn up to the call that returned false.
  Verdict verdict() const { return verdict_; }
  /// Whether one of these calls has thrown, because the study was unreachable.
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

/// An objective function: returns the metrics of a trial, one for each objective. An exception
/// fails the trial with its message.
using ObjectiveFunction = std::function<std::vector<double>(Evaluation&)>;

/// Runs trials in this thread until the study needs no more. `worker` must be a unique name. Throws
/// the errors of the study client.
void optimize(StudyClient& client, const ObjectiveFunction& objective,
              const std::string& worker = "optimize");

}  // namespace gallop::tune
