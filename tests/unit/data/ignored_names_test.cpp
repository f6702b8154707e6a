#include "gallop/data/ignored_names.h"

#include <gtest/gtest.h>

namespace gallop::data {
namespace {

TEST(IgnoredNames, AreHiddenOnesAndThoseOfSystems) {
  for (const char* name : {".a", "._1.jpg", ".DS_Store", ".ipynb_checkpoints", "__MACOSX",
                           "Thumbs.db", "thumbs.DB", "@eaDir", "desktop.ini"}) {
    EXPECT_TRUE(is_ignored_name(name)) << name;
  }
  for (const char* name : {"a", "1.jpg", "_a", "__a__", ".", "..", "MACOSX", "a.DS_Store"}) {
    EXPECT_FALSE(is_ignored_name(name)) << name;
  }
  EXPECT_TRUE(has_ignored_name("a/.b/c.jpg"));
  EXPECT_TRUE(has_ignored_name("__MACOSX/a.jpg"));
  EXPECT_TRUE(has_ignored_name("a/._b.jpg"));
  EXPECT_FALSE(has_ignored_name("./a/../b.jpg"));
}

}  // namespace
}  // namespace gallop::data
