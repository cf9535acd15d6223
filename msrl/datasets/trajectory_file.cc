#include "msrl/datasets/trajectory_file.h"

#include <utility>

#include "msrl/core/check.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/files/atomic_file.h"

namespace msrl {

TrajectoryFile ReadTrajectories(const std::filesystem::path& path) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 32;
  const std::string extension = path.extension().string();
  if (extension == ".csv") {
    return ParseTrajectoryCsv(ReadWholeFile(path, kMaxBytes), path.string());
  }
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") {
    return ParseTrajectoryJson(ReadWholeFile(path, kMaxBytes), path.string());
  }
  if (extension == ".h5" || extension == ".hdf5") {
    const EpisodeFile episodes = ReadEpisodes(path);
    TrajectoryFile file;
    file.d = episodes.episodes.front().geometry.rows();
    file.q = episodes.action_code_size;
    for (std::size_t k = 0; k < episodes.episodes.size(); ++k) {
      file.trajectories.push_back({StrCat("episode_", k, " ", episodes.episodes[k].env),
                                   ToSegment(episodes.episodes[k], episodes.action_code_size)});
    }
    return file;
  }
  throw UserError(StrCat("cannot tell the format of ", path.string(),
                         ": name it .jsonl (JSON lines), .csv or .h5 (episodes)"));
}

namespace internal {

void TrajectoryCollector::Fail(std::size_t line, std::string_view problem) const {
  throw UserError(StrCat(source_, ":", line, ": ", problem));
}

void TrajectoryCollector::Add(std::size_t line, std::string name, const RowTable& x,
                              const RowTable& a, const std::vector<double>& r) {
  const auto steps = static_cast<Index>(r.size());
  if (x.rows != steps + 1 || (a.rows != steps && a.columns > 0)) {
    Fail(line, StrCat("a trajectory with ", steps, " rewards needs ", steps + 1, " rows of x and ",
                      steps, " rows of a, got ", x.rows, " and ", a.rows));
  }
  if (x.columns < 1) Fail(line, "x has no columns");
  const auto require_same = [&](const char* what, Index& known, Index got) {
    if (known < 0) known = got;
    if (known != got) {
      Fail(line, StrCat(what, " has ", got, " columns, in the trajectories before ", known));
    }
  };
  require_same("x", file_.d, x.columns);
  if (steps > 0) require_same("a", file_.q, std::max<Index>(a.columns, 0));

  Trajectory& trajectory = file_.trajectories.emplace_back();
  trajectory.name = name.empty() ? std::to_string(file_.trajectories.size() - 1) : std::move(name);
  trajectory.segment.x = Eigen::Map<const Eigen::MatrixXd>(x.values.data(), x.columns, x.rows);
  trajectory.segment.a =
      Eigen::Map<const Eigen::MatrixXd>(a.values.data(), std::max<Index>(a.columns, 0), steps);
  trajectory.segment.r = Eigen::Map<const Eigen::VectorXd>(r.data(), steps);
}

TrajectoryFile TrajectoryCollector::Finish() && {
  if (file_.trajectories.empty()) throw UserError(StrCat(source_, ": no trajectory in it"));
  file_.q = std::max<Index>(file_.q, 0);
  // single states don't say how many action columns they would have
  for (Trajectory& trajectory : file_.trajectories) {
    if (trajectory.segment.horizon() == 0) trajectory.segment.a.resize(file_.q, 0);
  }
  return std::move(file_);
}

bool NextLine(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const std::size_t end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

}  // namespace internal
}  // namespace msrl
