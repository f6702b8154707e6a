#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::data {

/// Returns the message of the DataError that `work` throws. Fails the test if none is thrown.
inline std::string data_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const DataError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no DataError was thrown";
  return {};
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

}  // namespace gallop::data
