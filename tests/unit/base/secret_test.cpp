#include "gallop/base/secret.h"

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(Secret, IsRandom) {
  const std::string one = new_secret(), other = new_secret();
  EXPECT_EQ(one.size(), 64);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, other);
}

TEST(Secret, ComparesAllBytes) {
  EXPECT_TRUE(is_same_secret("abc", "abc"));
  EXPECT_FALSE(is_same_secret("abc", "abd"));
  EXPECT_FALSE(is_same_secret("abc", "bbc"));
  EXPECT_FALSE(is_same_secret("abc", "ab"));
}

}  // namespace
}  // namespace gallop
