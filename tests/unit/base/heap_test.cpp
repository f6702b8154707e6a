#include "gallop/base/heap.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

namespace gallop {
namespace {

TEST(Heap, WhatTheSystemDoesAboutHugePagesIsRead) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-heap-");
  const fs::path file = folder.path() / "enabled";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return transparent_huge_pages(file);
  };
  EXPECT_EQ(read("always [madvise] never\n"), "madvise");
  EXPECT_EQ(read("always madvise [never]\n"), "never");
  EXPECT_EQ(read("nonsense"), "");
  EXPECT_EQ(transparent_huge_pages(folder.path() / "nothing"), "");
}

}  // namespace
}  // namespace gallop
