#pragma once

#include <string>

#include <gtest/gtest.h>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// A study that a test keeps in a storage: one number between -1 and 1.
inline StudySettings stored_settings(const std::string& name = "a", int64_t trials = 1000) {
  return {.name = name,
          .seed = 3,
          .space = Space({{"x", Interval{.low = -1, .high = 1}}}, {}),
          .objectives = {{"loss", false}},
          .trials = trials};
}

/// What a call says that throws this; a test failure where it does not.
template <typename Thrown, typename Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace gallop::tune
