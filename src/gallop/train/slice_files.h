#pragma once

#include <functional>
#include <map>
#include <string>

#include "gallop/train/checkpoint.h"

// Internal to train/: the files of a checkpoint that is being written.
namespace gallop::train {

/// The two files of a slice.
enum class SliceKind : uint8_t { kModel, kState };
fs::path slice_path(const CheckpointDraft& draft, SliceKind kind, int slice);
std::map<std::string, std::string> slice_metadata();

/// Calls a function that writes a draft. If it throws, removes the draft, and adds the required
/// bytes to a DeviceError.
void or_tell_bytes(const CheckpointDraft& draft, const std::function<void()>& function);

}  // namespace gallop::train
