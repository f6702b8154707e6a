#pragma once

#include <functional>
#include <string>

#include "gallop/base/error.h"

namespace gallop {

/// What the Error that the action throws says; empty where it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace gallop
