#include "gallop/base/hash.h"

#include <gtest/gtest.h>

namespace gallop {
namespace {

// Hashes of the empty input from the xxHash specification, `xxhsum -H3` and `-H2`.
TEST(Hash, KnownAnswers) {
  EXPECT_EQ(xxh3_64(""), 0x2d06800538d394c2U);
  EXPECT_EQ(xxh3_128(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, DoesNotDependOnTheChunks) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  for (const size_t piece : {1U, 63U, 64U, 1000U, 5000U}) {
    Hasher hasher;
    for (size_t at = 0; at < text.size(); at += piece) {
      hasher.update(text.data() + at, std::min(piece, text.size() - at));
    }
    EXPECT_EQ(hasher.digest(), xxh3_128(text)) << piece;
  }
}

TEST(Hash, DependsOnEveryBit) {
  std::string text(100, 'a');
  const std::string whole = xxh3_128(text);
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(text[i] ^ 1);
    EXPECT_NE(xxh3_128(text), whole);
    text[i] = 'a';
  }
}

}  // namespace
}  // namespace gallop
