#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::data {

/// The splits of a data set, in the order in which they are read and listed.
enum class Part : size_t { kTrain = 0, kValidation = 1, kTest = 2 };
inline constexpr size_t kParts = 3;
inline constexpr const char* kPartNames[kParts] = {"train", "validation", "test"};

/// Names of a split in files and folders, the most common first.
inline std::vector<std::string> part_words(Part part) {
  if (part == Part::kTrain) return {"train"};
  if (part == Part::kTest) return {"test"};
  return {"val", "validation", "valid"};
}

/// The split with this name, case-insensitive; nullopt if there is none.
std::optional<Part> part_of_word(std::string_view word);

}  // namespace gallop::data
