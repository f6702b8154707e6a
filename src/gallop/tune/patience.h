#pragma once

#include <functional>

#include "gallop/base/error.h"

namespace gallop::tune {

/// How long to wait for the process that leads a study, or for its database.
struct Patience {
  double seconds = 0;               ///< In each call, approximately; 0: minutes.
  std::function<bool()> goes_on{};  ///< Once it returns false, the wait ends within 2 s.
};

/// The study's coordinator is missing or does not answer, or its database does not, within the
/// patience.
class StudyUnreachable : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The remaining time of a patience.
class Wait {
 public:
  /// Starts the wait; `seconds` must not be 0.
  explicit Wait(Patience patience);

  bool is_over();
  double seconds_left() const;

 private:
  std::function<bool()> goes_on_;
  double until_;
};

}  // namespace gallop::tune
