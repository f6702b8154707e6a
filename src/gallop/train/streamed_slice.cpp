#include "gallop/train/streamed_slice.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/shared_state.h"

namespace gallop::train {

void StreamedSlice::attempt(const std::function<void()>& function) {
  if (failure_) return;
  try {
    or_tell_bytes(draft_, function);
  } catch (...) {
    failure_ = std::current_exception();
    files_.clear();
  }
}

void StreamedSlice::begin(SliceKind kind, const NamedTensors& tensors) {
  attempt([&] {
    const fs::path path = slice_path(draft_, kind, slice_);
    files_.emplace_back(path, SafetensorsWriter(path, tensors, slice_metadata()));
  });
}

void StreamedSlice::append(const at::Tensor& tensor) {
  attempt([&] { files_.back().second.append(tensor); });
}

WrittenFiles StreamedSlice::finish() {
  WrittenFiles written;
  attempt([&] {
    for (auto& [path, file] : files_) written[path.filename().string()] = file.finish();
  });
  files_.clear();
  if (failure_) std::rethrow_exception(failure_);
  return written;
}

namespace {

// The tensors of each slice in the order of their file.
std::vector<std::vector<LogicalTensor>> slices_of(const std::vector<LogicalTensor>& tensors,
                                                  int slices) {
  std::map<std::string, const LogicalTensor*> by_name;
  for (const LogicalTensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  const NamedTensors wholes = wholes_of(tensors);
  std::vector<std::vector<LogicalTensor>> all;
  for (int slice = 0; slice < slices; ++slice) {
    const NamedTensors chosen = slice_of(wholes, slice, slices);
    auto& of_slice = all.emplace_back();
    for (const size_t i : safetensors_order(chosen)) {
      of_slice.push_back(*by_name.at(chosen[i].name));
    }
  }
  return all;
}

// `own` belongs to the file of this process, wherever its order puts it.
void write_kind(parallel::Collectives& collectives, StreamedSlice* slice, SliceKind kind,
                const std::vector<std::vector<LogicalTensor>>& slices, const NamedTensors& own) {
  NamedTensors file;
  std::vector<size_t> order;
  size_t next = 0, gathered = 0;
  if (slice != nullptr) {
    file = wholes_of(slices[static_cast<size_t>(collectives.rank())]);
    gathered = file.size();
    file.insert(file.end(), own.begin(), own.end());
    order = safetensors_order(file);
    slice->begin(kind, file);
  }
  const auto write_own = [&] {
    for (; next < order.size() && order[next] >= gathered; ++next) {
      slice->append(file[order[next]].tensor);
    }
  };
  gather_in_turn(collectives, slices, [&](const at::Tensor& whole) {
    write_own();
    slice->append(whole);
    next += 1;
  });
  write_own();
}

}  // namespace

std::shared_ptr<StreamedSlice> write_slices(parallel::Collectives& collectives,
                                            const CheckpointDraft& draft,
                                            const DividedState& state) {
  std::shared_ptr<StreamedSlice> slice;
  if (collectives.rank() < draft.slices) {
    slice = std::make_shared<StreamedSlice>(draft, collectives.rank());
  }
  write_kind(collectives, slice.get(), SliceKind::kModel, slices_of(state.model, draft.slices), {});
  write_kind(collectives, slice.get(), SliceKind::kState, slices_of(state.optimizer, draft.slices),
             state.own);
  return slice;
}

}  // namespace gallop::train
