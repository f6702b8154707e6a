#pragma once

#include <stdexcept>
#include <string>

namespace gallop {

/// Exit codes of commands; documented in docs/commands.md.
enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,
  kData = 3,
  kDevice = 4,
  kStopped = 5,
};

/// Base of every error that Gallop throws. The message says what is wrong, what was given and what
/// to do about it, in one line (or one line per mistake).
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The request is invalid: unknown key, wrong type, value out of range.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

/// A file or data set is missing, damaged or does not match the recipe.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::kData, message) {}
};

/// A device is missing, full or failing; disks count as devices.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message) : Error(ExitCode::kDevice, message) {}
};

/// A bug in Gallop, which the user is asked to report.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitCode::kInternal, message) {}
};

}  // namespace gallop
