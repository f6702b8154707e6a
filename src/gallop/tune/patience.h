#pragma once

#include <functional>

#include "gallop/base/error.h"

namespace gallop::tune {

/// How long whoever keeps a study is waited for: the process that leads it, or a database.
struct Patience {
  double seconds = 0;               ///< In each call, about; 0: minutes.
  std::function<bool()> goes_on{};  ///< Where it says no meanwhile, 2 s are left.
};

/// No process leads the study, none that leads it answers, or its database does not, for as long as
/// there was patience.
class StudyUnreachable : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// What is left of a patience.
class Wait {
 public:
  /// Begins now; `seconds` is not 0.
  explicit Wait(Patience patience);

  bool is_over();
  double seconds_left() const;

 private:
  std::function<bool()> goes_on_;
  double until_;
};

}  // namespace gallop::tune
