#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gallop/base/error.h"
#include "gallop/config/visitor.h"

namespace gallop::schedule {

/// A length within a run, as in recipes: a fraction of the run, epochs or steps.
struct Span {
  enum class Unit { kShare, kEpochs, kSteps };
  double count = 0;
  Unit unit = Unit::kShare;

  /// Parses "0.25", "30 epochs" or "500 steps". Throws UsageError for anything else and a fraction
  /// above 1.
  static Span parse(const std::string& text);
};

/// The field of an option that is a span.
config::Field span_field(const char* name, const char* help);

/// The length of a run, or of a part of one. Progress counts samples, so that every span is a
/// fraction of them, exact to the last bit if the run consists of whole batches.
struct RunLength {
  double samples = 1;            ///< Of the whole run, in any unit that the other fields share.
  double samples_per_epoch = 0;  ///< 0: unknown.
  double batch = 0;              ///< Samples per step; 0: unknown.
  double batches_per_epoch = 0;  ///< 0: the last batch of an epoch is not smaller.
  /// The number of updates up to a fraction of the run; needed if its batch size changes.
  std::function<int64_t(double share)> step_at{};
  /// A unit in which spans of the run have no length, because its batches become larger.
  std::optional<Span::Unit> excluded{};

  /// A span as a fraction of the run, which may exceed 1 for epochs and steps. Throws
  /// UnknownLength, and UsageError for an excluded unit.
  double share_of(const Span& span) const;
  double share_of(const std::string& span) const { return share_of(Span::parse(span)); }

  /// A span in updates, rounded; the length of the run for a fraction of 1. Throws UnknownLength.
  int64_t steps_of(const Span& span) const;
  int64_t steps_of(const std::string& span) const { return steps_of(Span::parse(span)); }

  /// The same for a distance, with the current batch size throughout.
  int64_t steps_between(const std::string& span) const;

  /// The first `share` of the run.
  RunLength part(double share) const;
};

/// A span in epochs or steps of a run whose length in them is unknown.
class UnknownLength final : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace gallop::schedule
