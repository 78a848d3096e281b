/// Finds the name that somebody who mistyped one most likely meant.
package enum NearestName {
  /// The known name that is fewest edits away, if it is near enough to be meant; upper and lower case are the same.
  package static func find(_ name: String, in known: some Sequence<String>) -> String? {
    let limit = max(2, name.utf8.count / 3)
    var best: (name: String, distance: Int)?
    for candidate in known {
      let distance = self.distance(name.lowercased(), candidate.lowercased())
      if distance <= limit, distance < candidate.utf8.count, distance < best?.distance ?? .max {
        best = (candidate, distance)
      }
    }
    return best?.name
  }

  /// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
  package static func distance(_ left: String, _ right: String) -> Int {
    let left = Array(left.utf8.prefix(100))
    let right = Array(right.utf8.prefix(100))
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var current = [row]
      for column in 1...right.count {
        let replace = last[column - 1] + (left[row - 1] == right[column - 1] ? 0 : 1)
        var cost = min(replace, last[column] + 1, current[column - 1] + 1)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          cost = min(cost, beforeLast[column - 2] + 1)
        }
        current.append(cost)
      }
      beforeLast = last
      last = current
    }
    return last[right.count]
  }
}
