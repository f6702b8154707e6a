#include "gallop/parallel/mesh.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::parallel {

DeviceMesh::DeviceMesh(std::vector<Axis> axes, int processes)
    : axes_(std::move(axes)), size_(processes) {
  std::vector<std::string> sizes;
  std::set<std::string> names;
  int64_t product = 1;
  for (const auto& [name, size] : axes_) {
    if (size < 1) throw UsageError(fmt::format("mesh: axis {} has size {}", name, size));
    if (!names.insert(name).second) throw UsageError(fmt::format("mesh: two axes {}", name));
    product *= size;
    sizes.push_back(fmt::format("{} {}", name, size));
  }
  if (product != processes) {
    throw UsageError(
        fmt::format("mesh: the axes {} are a grid of {} processes, but there are {}; their product "
                    "must be the number of processes",
                    fmt::join(sizes, ", "), product, processes));
  }
}

size_t DeviceMesh::index_of(const std::string& axis) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) return i;
  }
  throw InternalError("mesh: no axis " + axis);
}

int DeviceMesh::stride(size_t axis) const {
  int stride = 1;
  for (size_t i = axis + 1; i < axes_.size(); ++i) stride *= axes_[i].size;
  return stride;
}

int DeviceMesh::coordinate(int rank, const std::string& axis) const {
  const size_t index = index_of(axis);
  return rank / stride(index) % axes_[index].size;
}

DeviceMesh::BatchPart DeviceMesh::batch_part(int rank) const {
  BatchPart own;
  for (const auto& [name, size] : axes_) {
    if (!name.starts_with("dp_")) continue;
    own.part = own.part * size + coordinate(rank, name);
    own.parts *= size;
  }
  return own;
}

std::vector<int> DeviceMesh::group_of(int rank, const std::vector<std::string>& axes) const {
  std::vector<bool> varies(axes_.size());
  for (const std::string& axis : axes) varies[index_of(axis)] = true;
  std::vector<int> group;
  for (int other = 0; other < size_; ++other) {
    bool is_one = true;
    for (size_t i = 0; i < axes_.size() && is_one; ++i) {
      is_one = varies[i] || coordinate(other, axes_[i].name) == coordinate(rank, axes_[i].name);
    }
    if (is_one) group.push_back(other);
  }
  return group;
}

std::unique_ptr<Collectives> DeviceMesh::group(Collectives& collectives,
                                               const std::vector<std::string>& axes) const {
  return collectives.subgroup(group_of(collectives.rank(), axes),
                              fmt::format("{}", fmt::join(axes, ",")));
}

AxisGroup::AxisGroup(const DeviceMesh& mesh, Collectives& all, const std::vector<std::string>& axes)
    : all_(&all) {
  const size_t size = mesh.group_of(all.rank(), axes).size();
  if (static_cast<int>(size) < mesh.size()) own_ = mesh.group(all, axes);
}

int degree_of(int64_t asked, int processes, const std::string& option) {
  if (asked == 0 || processes == 1) return processes;
  if (asked == 1) {
    throw UsageError(
        fmt::format("{} is 1, so that each process has the whole model; take parallel.name=ddp, or "
                    "a degree of 2 or more",
                    option));
  }
  if (asked <= processes && processes % asked == 0) return static_cast<int>(asked);
  std::vector<std::string> degrees, sizes;
  int64_t below = std::min<int64_t>(asked, processes), above = below;
  while (processes % below != 0) --below;
  while (processes % above != 0) ++above;
  if (below > 1) degrees.push_back(std::to_string(below));
  if (above > below) degrees.push_back(std::to_string(above));
  if (processes > asked) sizes.push_back(std::to_string(processes / asked * asked));
  sizes.push_back(std::to_string((processes / asked + 1) * asked));
  throw UsageError(fmt::format(
      "{} is {}, which does not divide the {} processes; set it to {}, or start {} processes",
      option, asked, processes, join_names(degrees), join_names(sizes)));
}

}  // namespace gallop::parallel
