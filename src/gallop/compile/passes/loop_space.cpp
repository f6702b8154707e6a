#include "gallop/compile/passes/loop_space.h"

#include <algorithm>

#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes) result *= size;
  return result;
}

View result_of(const Graph& graph, int64_t node) {
  return part_of_result(graph, graph.nodes[node]);
}

bool is_of_level(const LoopSpace& space, Level level, size_t dim) {
  switch (level) {
    case Level::kElement: return true;
    case Level::kRow: return !space.in_row[dim];
    case Level::kColumn: return space.in_row[dim];
    default: return false;
  }
}

// Calls body(dimension of `sizes`, dimension of the space, number of inner elements) for each
// dimension of the level. False if the space's sizes are not factors of `sizes`.
template <typename Body>
bool match(const LoopSpace& space, Level level, const std::vector<int64_t>& sizes,
           const Body& body) {
  size_t dim = space.sizes.size();
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t inner = 1;
    while (inner < sizes[i]) {
      while (dim > 0 && !is_of_level(space, level, dim - 1)) --dim;
      if (dim == 0) return false;
      --dim;
      body(i, dim, inner);
      inner *= space.sizes[dim];
    }
    if (inner != sizes[i]) return false;
  }
  while (dim > 0) {
    if (is_of_level(space, level, --dim)) return false;
  }
  return true;
}

// The coarsest sizes from which all of these result by merging neighbors; all have the same numel.
std::optional<std::vector<int64_t>> common_factors(const std::set<std::vector<int64_t>>& list) {
  std::set<int64_t> ends;
  for (const auto& sizes : list) {
    int64_t end = 1;
    for (size_t i = sizes.size(); i-- > 0;) ends.insert(end *= sizes[i]);
  }
  std::vector<int64_t> factors;
  int64_t before = 1;
  for (const int64_t end : ends) {
    if (end % before != 0) return std::nullopt;
    if (end != before) factors.push_back(end / before);
    before = end;
  }
  std::reverse(factors.begin(), factors.end());
  return factors;
}

/// Computes the levels of a group's nodes, given which dimensions form a row.
class Levels {
 public:
  Levels(const Graph& graph, const std::vector<Uses>& uses, const Group& group,
         const std::map<int64_t, Reduction>& reductions, LoopSpace space)
      : graph_(graph),
        uses_(uses),
        group_(group),
        reductions_(reductions),
        space_(std::move(space)) {}

  std::optional<LoopSpace> find() {
    if (!choose(group_.begin())) return std::nullopt;
    return std::move(space_);
  }

 private:
  bool choose(Group::const_iterator at) {
    if (at == group_.end()) return true;
    for (const Level level : possible(*at)) {
      space_.levels[*at] = level;
      if (fits(*at) && choose(std::next(at))) return true;
    }
    space_.levels.erase(*at);
    return false;
  }

  std::vector<Level> possible(int64_t node) const {
    if (const auto found = reductions_.find(node); found != reductions_.end()) {
      return level_of_reduction(found->second);
    }
    const int64_t count = result_of(graph_, node).numel();
    if (count == product(space_.sizes)) return {Level::kElement};
    // Parts of a join need not all be of one level.
    if (is_join(graph_, graph_.nodes[node])) return {};
    std::vector<Level> levels;
    for (const Level level : {Level::kRow, Level::kColumn, Level::kTotal}) {
      int64_t numbers = 1;
      for (size_t i = 0; i < space_.sizes.size(); ++i) {
        if (is_of_level(space_, level, i)) numbers *= space_.sizes[i];
      }
      if (numbers == count) levels.push_back(level);
    }
    return levels;
  }

  std::vector<Level> level_of_reduction(const Reduction& reduction) const {
    std::vector<bool> reduced(space_.sizes.size());
    const bool is_of_all =
        match(space_, Level::kElement, reduction.sizes,
              [&](size_t i, size_t dim, int64_t) { reduced[dim] = reduction.reduced[i]; });
    if (!is_of_all) return {};
    if (reduction.is_spread && reduced != space_.in_row) return {};
    if (reduction.is_spread) return {Level::kElement};
    if (std::count(reduced.begin(), reduced.end(), false) == 0) return {Level::kTotal};
    if (reduced == space_.in_row) return {Level::kRow};
    reduced.flip();
    return reduced == space_.in_row ? std::vector{Level::kColumn} : std::vector<Level>{};
  }

  // Whether the tensors that the node reads are available at the same positions when it reads them.
  bool fits(int64_t node) const {
    const auto sizes = sizes_of(graph_, graph_.nodes[node]);
    const Level read = level_read(graph_, space_, node);
    const View result = result_of(graph_, node);
    if (!space_.strides_of(result, result.sizes, space_.levels.at(node))) return false;
    bool is_made = read == Level::kElement;
    for (const ViewId tensor : tensors_of(graph_.nodes[node])) {
      const View& view = graph_.views[tensor];
      const auto strides = space_.strides_of(view, sizes, read);
      if (!strides) return false;
      const int64_t maker = maker_within(graph_, uses_, group_, tensor);
      if (maker == kNone) continue;
      const Level level = space_.levels.at(maker);
      const bool is_there = level == read || (read == Level::kElement && level == Level::kRow);
      const View made = result_of(graph_, maker);
      if (!is_there || view.offset != made.offset || view.dtype != made.dtype ||
          strides != space_.strides_of(made, made.sizes, level)) {
        return false;
      }
      is_made = is_made || level == read;
    }
    // A value per row, column or loop belongs to another loop, unless a reduction computes it.
    return is_made;
  }

  const Graph& graph_;
  const std::vector<Uses>& uses_;
  const Group& group_;
  const std::map<int64_t, Reduction>& reductions_;
  LoopSpace space_;
};

// The possible rows: the dimensions that some node reduces, and the others.
std::vector<std::vector<bool>> possible_rows(const LoopSpace& space,
                                             const std::map<int64_t, Reduction>& reductions) {
  std::vector<bool> row(space.sizes.size());
  for (const auto& entry : reductions) {
    const Reduction& reduction = entry.second;
    std::vector<bool> reduced(space.sizes.size());
    if (!match(space, Level::kElement, reduction.sizes,
               [&](size_t i, size_t dim, int64_t) { reduced[dim] = reduction.reduced[i]; })) {
      return {};
    }
    const auto count = std::count(reduced.begin(), reduced.end(), true);
    if (count == 0 || static_cast<size_t>(count) == reduced.size()) continue;
    row = reduced;
    reduced.flip();
    return {row, reduced};
  }
  return {row};
}

}  // namespace

std::optional<std::vector<int64_t>> LoopSpace::strides_of(const View& view,
                                                          const std::vector<int64_t>& wanted,
                                                          Level level) const {
  std::vector<int64_t> own(wanted.size(), 0), strides(sizes.size(), 0);
  const size_t missing = wanted.size() - view.sizes.size();
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] != 1) own[missing + i] = view.strides[i];
  }
  const bool fits = match(*this, level, wanted, [&](size_t i, size_t dim, int64_t inner) {
    strides[dim] = own[i] * inner;
  });
  return fits ? std::optional(strides) : std::nullopt;
}

std::vector<int64_t> sizes_of(const Graph& graph, const Node& node) {
  const auto reduction = reduction_of(graph, node);
  return reduction ? reduction->sizes : part_of_result(graph, node).sizes;
}

Level level_read(const Graph& graph, const LoopSpace& space, int64_t node) {
  return reduction_of(graph, graph.nodes[node]) ? Level::kElement : space.levels.at(node);
}

int64_t maker_within(const Graph& graph, const std::vector<Uses>& uses, const Group& group,
                     ViewId view) {
  const auto& writers = uses[graph.views[view].buffer].writers;
  return !writers.empty() && group.contains(writers[0]) ? writers[0] : kNone;
}

std::vector<LoopSpace> spaces_of(const Graph& graph, const std::vector<Uses>& uses,
                                 const Group& group) {
  std::map<int64_t, Reduction> reductions;
  std::set<std::vector<int64_t>> largest;
  int64_t most = 0;
  for (const int64_t node : group) {
    if (auto reduction = reduction_of(graph, graph.nodes[node])) {
      reductions.emplace(node, std::move(*reduction));
    }
    const auto sizes = sizes_of(graph, graph.nodes[node]);
    const int64_t count = product(sizes);
    if (count > most) largest.clear();
    most = std::max(most, count);
    if (count == most) largest.insert(sizes);
  }
  const auto factors = common_factors(largest);
  if (!factors) return {};
  LoopSpace space{.sizes = *factors, .in_row = {}, .levels = {}};
  std::vector<LoopSpace> spaces;
  for (const auto& row : possible_rows(space, reductions)) {
    space.in_row = row;
    if (auto found = Levels(graph, uses, group, reductions, space).find()) {
      spaces.push_back(std::move(*found));
    }
  }
  return spaces;
}

}  // namespace gallop::compile::passes
