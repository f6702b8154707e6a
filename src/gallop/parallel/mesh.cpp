#include "gallop/parallel/mesh.h"

#include <algorithm>
#include <iterator>
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

int DeviceMesh::size(const std::string& axis) const {
  const auto is_axis = [&](const Axis& one) { return one.name == axis; };
  const auto own = std::find_if(axes_.begin(), axes_.end(), is_axis);
  if (own != axes_.end()) return own->size;
  if (std::find(std::begin(kAxes), std::end(kAxes), axis) != std::end(kAxes)) return 1;
  throw InternalError("mesh: no axis " + axis);
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
    if (!name.starts_with("dp_") && name != kExpertAxis) continue;
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

std::string DeviceMesh::describe() const {
  std::vector<std::string> sizes;
  for (const auto& [name, size] : axes_) {
    if (size > 1) sizes.push_back(fmt::format("{} {}", name, size));
  }
  return sizes.size() > 1 ? fmt::format("{}", fmt::join(sizes, " x ")) : "";
}

Collectives& MeshGroups::along(const std::vector<std::string>& axes) {
  std::vector<std::string> longer;
  int processes = 1;
  for (const std::string& axis : axes) {
    if (mesh_.size(axis) > 1) longer.push_back(axis);
    processes *= mesh_.size(axis);
  }
  if (processes == mesh_.size()) return all_;
  std::unique_ptr<Collectives>& group = groups_[longer];
  if (!group) {
    group = longer.empty() ? all_.subgroup({all_.rank()}, "self") : mesh_.group(all_, longer);
  }
  return *group;
}

int degree_of(const DegreeOption& option, int processes, const DegreeOption& inner,
              int inner_degree) {
  const int64_t asked = option.asked;
  const int count = processes / inner_degree;  // That this axis and replicas divide.
  if (processes == 1) return 1;
  if (count == 1) {
    throw UsageError(
        fmt::format("{} is {}, which leaves none of the {} processes for {}; set it to a lower "
                    "degree, or start {} processes",
                    inner.name, inner_degree, processes, option.name, 2 * processes));
  }
  if (asked == 0) return count;
  if (asked == 1) {
    throw UsageError(fmt::format(
        "{} is 1, so {}, or a degree of 2 or more", option.name,
        inner_degree > 1
            ? fmt::format("only {} divides the model; use the strategy of that option", inner.name)
            : "each process has the whole model; use parallel.name=ddp"));
  }
  if (asked <= count && count % asked == 0) return static_cast<int>(asked);
  std::vector<std::string> degrees, sizes;
  int64_t below = std::min<int64_t>(asked, count), above = below;
  while (count % below != 0) --below;
  while (count % above != 0) ++above;
  if (below > 1) degrees.push_back(std::to_string(below));
  if (above > below) degrees.push_back(std::to_string(above));
  if (count > asked) sizes.push_back(std::to_string(count / asked * asked * inner_degree));
  sizes.push_back(std::to_string((count / asked + 1) * asked * inner_degree));
  const std::string what = inner_degree == 1 ? fmt::format("the {} processes", processes)
                                             : fmt::format("{} ({} processes / {}={})", count,
                                                           processes, inner.name, inner_degree);
  throw UsageError(
      fmt::format("{} is {}, which does not divide {}; set it to {}, or start {} processes",
                  option.name, asked, what, join_names(degrees), join_names(sizes)));
}

}  // namespace gallop::parallel
