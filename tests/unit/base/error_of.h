#pragma once

#include <functional>
#include <string>

#include "gallop/base/error.h"

namespace gallop {

/// The message of the Error that the action throws; empty if it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace gallop
