#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gallop/base/error.h"
#include "gallop/config/visitor.h"

namespace gallop::schedule {

/// A length within a run as recipes give it: a share of the run, epochs or steps.
struct Span {
  enum class Unit { kShare, kEpochs, kSteps };
  double count = 0;
  Unit unit = Unit::kShare;

  /// "0.25", "30 epochs", "500 steps". Throws UsageError for anything else and for a share above 1.
  static Span parse(const std::string& text);
};

/// The option `name` for a span.
config::Field span_field(const char* name, const char* help);

/// How long a run is, or a part of one. Progress counts samples, so every span becomes a share of
/// them, exact to the last bit where the run is made of whole batches.
struct RunLength {
  double samples = 1;            ///< Of the whole run, in any unit that the others share.
  double samples_per_epoch = 0;  ///< 0: not known.
  double batch = 0;              ///< Samples of one step; 0: not known.
  double batches_per_epoch = 0;  ///< 0: the last batch of an epoch is no smaller than the others.
  /// The updates up to a fraction of the run; needed where its batch size has changed on the way.
  std::function<int64_t(double share)> step_at{};

  /// The share of the run, which may be above 1 for epochs and steps. Throws UnknownLength.
  double share_of(const Span& span) const;
  double share_of(const std::string& span) const { return share_of(Span::parse(span)); }

  /// The updates that it is, rounded; of the whole run for a share of 1. Throws UnknownLength.
  int64_t steps_of(const Span& span) const;
  int64_t steps_of(const std::string& span) const { return steps_of(Span::parse(span)); }

  /// The same for a distance, whose updates all have the present batch size.
  int64_t steps_between(const std::string& span) const;

  /// The part of the run that is `share` of it.
  RunLength part(double share) const;
};

/// A span in epochs or steps of a run whose length in them is not known.
class UnknownLength final : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace gallop::schedule
