import Wire

/// The fields of a request; all forms of it have the same ones, under names of their own.
enum RequestField: UInt8, CaseIterable {
  case app, token, tokens, payload, pushType, priority, expiration, collapseID, id, topic, channel

  /// Its key in the JSON form, and its name in the schema of the Protobuf form.
  var keyText: StaticString {
    switch self {
    case .app: "app"
    case .token: "token"
    case .tokens: "tokens"
    case .payload: "payload"
    case .pushType: "push_type"
    case .priority: "priority"
    case .expiration: "expiration"
    case .collapseID: "collapse_id"
    case .id: "id"
    case .topic: "topic"
    case .channel: "channel"
    }
  }

  /// The same, for messages.
  var key: String { keyText.description }

  /// Its name in the header form, where Apple's own names are used; for messages.
  var header: String {
    switch self {
    case .pushType: "apns-push-type"
    case .priority: "apns-priority"
    case .expiration: "apns-expiration"
    case .collapseID: "apns-collapse-id"
    case .topic: "apns-topic"
    case .channel: "apns-channel-id"
    case .app, .token, .tokens, .payload, .id: key
    }
  }

  /// What a value breaks that has the right type and is wrong all the same.
  var rule: InvalidRule {
    switch self {
    case .app: .unknownApp
    case .token, .tokens: .badToken
    case .payload: .badPayload
    case .pushType: .badPushType
    case .priority: .badPriority
    case .expiration: .badExpiration
    case .collapseID: .badCollapseID
    case .id: .badID
    case .topic: .badTopic
    case .channel: .badChannel
    }
  }
}

/// What a request says in one field, not yet judged.
struct FieldValue {
  enum Kind: UInt8 {
    case absent, null, string, number, boolean, object, array
    /// A string that is no text: not UTF-8, or an escaped surrogate without its partner.
    case brokenText
  }

  var kind: Kind
  /// A string that must be unescaped before it is read.
  var hasEscapes = false
  /// A string without its quotes; an object with its braces; empty where it tells nothing.
  var range = ByteRange.empty

  static let absent = FieldValue(kind: .absent)
  static let null = FieldValue(kind: .null)

  /// Null in an optional field means the same as no field.
  var isGiven: Bool { kind != .absent && kind != .null }

  init(kind: Kind, range: ByteRange = .empty) {
    self.kind = kind
    self.range = range
  }

  /// Bytes that should be UTF-8.
  init(text range: ByteRange, in bytes: Span<UInt8>) {
    self.init(kind: UTF8Text.isValid(bytes.extracting(range.indices)) ? .string : .brokenText, range: range)
  }

  init(_ value: JSONValue) {
    switch value {
    case .string(let string):
      self.init(kind: .string, range: string.range)
      hasEscapes = string.hasEscapes
    case .number(let range, _): self.init(kind: .number, range: range)
    case .object(let range): self.init(kind: .object, range: range)
    case .array(let range): self.init(kind: .array, range: range)
    case .true, .false: self.init(kind: .boolean)
    case .null: self.init(kind: .null)
    }
  }
}

/// All that one record says, in any form: the stretch between reading a form and judging the contract, so that the
/// rules are written once.
struct RequestFields {
  enum Form { case json, headers, protobuf }

  var form: Form
  private var values = InlineArray<11, FieldValue>(repeating: .absent)
  /// Items of `tokens`; more than `tokenItems` holds if there are too many.
  var tokenCount = 0
  /// The items of `tokens`, at most as many as the contract allows.
  var tokenItems: [FieldValue]
  /// Fields that the contract does not know.
  var unknownFields = 0
  /// The `traceparent` that stands in the value.
  var trace: RecordBody.Header?
  /// The first of the unknown keys, for a guess at what was meant.
  var unknownKeys = InlineArray<4, ByteRange>(repeating: .empty)

  /// - Parameter tokenItems: an empty array whose capacity may be used.
  init(form: Form, tokenItems: consuming [FieldValue] = []) {
    self.form = form
    self.tokenItems = tokenItems
  }

  subscript(field: RequestField) -> FieldValue {
    get { values[Int(field.rawValue)] }
    set { values[Int(field.rawValue)] = newValue }
  }

  /// What the field is called in the form that the record has.
  func name(of field: RequestField) -> String { form == .headers ? field.header : field.key }

  mutating func noteUnknown(_ key: ByteRange) {
    if unknownFields < 4 { unknownKeys[unknownFields] = key }
    unknownFields += 1
  }

  /// Whether there is a string that must be unescaped before it is read.
  var hasEscapes: Bool {
    for index in values.indices where values[index].hasEscapes { return true }
    for index in tokenItems.indices where tokenItems[index].hasEscapes { return true }
    return false
  }

  /// Gives each string with escapes its text, which is appended to `storage`. Rare.
  mutating func unescape(in storage: inout [UInt8]) {
    for field in RequestField.allCases where self[field].hasEscapes {
      self[field] = Self.unescaped(self[field], in: &storage)
    }
    for index in tokenItems.indices where tokenItems[index].hasEscapes {
      tokenItems[index] = Self.unescaped(tokenItems[index], in: &storage)
    }
  }

  static func unescaped(_ value: FieldValue, in storage: inout [UInt8]) -> FieldValue {
    let string = JSONString(range: value.range, hasEscapes: true)
    guard let range = try? JSONText.unescape(string, within: &storage) else {
      return FieldValue(kind: .brokenText, range: value.range)
    }
    return FieldValue(kind: .string, range: range)
  }
}
