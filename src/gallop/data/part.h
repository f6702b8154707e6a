#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::data {

/// The parts of a data set, in the order in which they are read and shown.
enum class Part : size_t { kTrain = 0, kValidation = 1, kTest = 2 };
inline constexpr size_t kParts = 3;
inline constexpr const char* kPartNames[kParts] = {"train", "validation", "test"};

/// Words that files and folders carry for a part; the first is the usual one.
inline std::vector<std::string> part_words(Part part) {
  if (part == Part::kTrain) return {"train"};
  if (part == Part::kTest) return {"test"};
  return {"val", "validation", "valid"};
}

/// The part that a word stands for, in any case of letters.
std::optional<Part> part_of_word(std::string_view word);

}  // namespace gallop::data
