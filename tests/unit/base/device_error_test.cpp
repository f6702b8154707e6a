#include "gallop/base/device_error.h"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

namespace gallop {
namespace {

std::string error_of(void (*raise)(const fs::path&, std::string_view, int), int error) {
  try {
    raise("runs/a", "create", error);
  } catch (const DeviceError& device) {
    return std::string("device: ") + device.what();
  } catch (const DataError& data) {
    return std::string("data: ") + data.what();
  }
  return {};
}

void write(const fs::path& path, std::string_view action, int error) {
  throw_device_error(path, action, error);
}

TEST(DeviceErrors, NameTheRemedyIfTheyAreAboutTheMachine) {
  const std::string files =
      "device: runs/a: cannot create: Too many open files; raise the limit of open files of a "
      "process (ulimit -n)";
  EXPECT_EQ(error_of(write, EMFILE), files);
  EXPECT_EQ(error_of(throw_read_error, EMFILE), files);
  EXPECT_EQ(error_of(check_machine_error, EMFILE), files);
}

TEST(DeviceErrors, AreDataErrorsOnlyWhereFilesAreRead) {
  EXPECT_EQ(error_of(write, EACCES), "device: runs/a: cannot create: Permission denied");
  EXPECT_EQ(error_of(throw_read_error, EACCES), "data: runs/a: cannot create: Permission denied");
  EXPECT_EQ(error_of(check_machine_error, EACCES), "");
}

}  // namespace
}  // namespace gallop
